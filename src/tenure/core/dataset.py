"""What may be exported: the catalogue's declarations, and a tenant's choice from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tenure.core import limits

Scalar = str | int | float | bool | None


class FilterOperator(StrEnum):
    """How a filter compares. `range` is half open: from <= value < to, either end may be absent."""

    EQ = "eq"
    NE = "ne"
    IN = "in"
    RANGE = "range"
    NULL = "null"
    PREFIX = "prefix"
    CONTAINS = "contains"


class Consistency(StrEnum):
    """What a package promises about time."""

    SNAPSHOT = "snapshot"
    """All datasets are read in one repeatable-read view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column a dataset offers."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A named, exportable query. Everything but values a caller chooses comes from here."""

    name: str
    source: str
    """Name of the source database in the settings."""
    query: str
    """A SELECT the operator wrote, without trailing semicolon; used as a subquery."""
    tenant_column: str
    key: tuple[str, ...]
    """Columns that are unique together: they fix the order of rows."""
    columns: tuple[Column, ...]
    cutoff_column: str | None = None
    """Timestamp column; rows later than the export's cutoff are left out. None: the snapshot alone decides."""
    filters: Mapping[str, frozenset[FilterOperator]] = field(default_factory=dict)
    """Column name -> operators callers may use on it."""
    description: str = ""
    row_limit: int = limits.ROW_LIMIT_DEFAULT
    query_timeout_seconds: float = limits.QUERY_TIMEOUT_SECONDS_DEFAULT
    consistency: Consistency = Consistency.SNAPSHOT

    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All datasets, by name, in the order of their declaration."""

    datasets: Mapping[str, Dataset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One condition, already checked against the catalogue.

    `values`: one for eq, ne, prefix, contains; any number for `in`; (from, to) for range; (True,) or (False,) for null.
    """

    column: str
    operator: FilterOperator
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A tenant's choice from one dataset: columns in output order, and filters that all must hold."""

    dataset: str
    columns: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
