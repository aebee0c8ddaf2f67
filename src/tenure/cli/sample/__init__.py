"""A sample product to export from: its database, its rows, and the tenure.toml that offers them.

schema.sql   the product's tables
fill.sql     believable and nasty rows for eight tenants, the same every time
keys.sql     keys, and the role that may only read
sample.toml  what Tenure may export of it
database     makes the database `product` on a server, once
"""

from tenure.cli.sample.database import BIG_TENANT, SAMPLE_CONFIG, SampleError, SampleFacts, ensure_sample

__all__ = ["BIG_TENANT", "SAMPLE_CONFIG", "SampleError", "SampleFacts", "ensure_sample"]
