"""SQL lives in files: `statement("jobs/claim")` is the text of `sql/jobs/claim.sql`."""

from functools import cache
from importlib.resources import files


@cache
def statement(name: str) -> bytes:
    """Text of one statement file, in the form psycopg takes without question."""
    return files("tenure.store").joinpath("sql", f"{name}.sql").read_bytes()
