"""Tenure: self-hosted data exports for multi-tenant products, on a fair background-job engine in PostgreSQL."""

__version__ = "0.1.0"

__all__ = ["__version__"]
