"""A PostgreSQL to read from, and the few things tests of reading need."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
from psycopg.conninfo import make_conninfo

from tenure.core.dataset import Column, Dataset, Filter, FilterOperator, Selection
from tenure.core.ids import TenantId
from tenure.sources.postgres import PostgresSource, open_postgres
from tenure.sources.request import PostgresSettings, ReadRequest

CUTOFF = datetime(2026, 6, 1, tzinfo=UTC)
ALL_OPERATORS = frozenset(FilterOperator)


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    name = f"source_{secrets.token_hex(6)}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    # It goes with the server: dropping it would wait for a checkpoint.
    yield make_conninfo(server_url, dbname=name)


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def dataset(query: str, **changes) -> Dataset:
    """A dataset of tenant column `tenant`, key `id` and every column given; `columns` is a tuple of names."""
    columns = changes.pop("columns", ("id",))
    values = {
        "name": "orders",
        "source": "shop",
        "query": query,
        "tenant_column": "tenant",
        "key": ("id",),
        "columns": tuple(Column(name=name) for name in columns),
        "filters": dict.fromkeys(columns, ALL_OPERATORS),
    }
    return Dataset(**{**values, **changes})


def request(chosen: Dataset, *filters: Filter, tenant: str = "acme", columns: tuple[str, ...] = ()) -> ReadRequest:
    names = columns or chosen.column_names()
    return ReadRequest(
        dataset=chosen,
        selection=Selection(dataset=chosen.name, columns=names, filters=filters),
        tenant_id=TenantId(tenant),
        cutoff=CUTOFF,
    )


def opened(url: str, *, tenant: str = "acme", tick: Callable[[], None] = lambda: None) -> PostgresSource:
    return open_postgres(
        PostgresSettings(url=url),
        tenant_id=TenantId(tenant),
        label="tenure export test 1",
        tick=tick,
    )


def tenure_copies(url: str) -> int:
    """How many of our COPY statements the server is running."""
    return _active(url, "COPY%")


def no_query_left(url: str) -> bool:
    """Waits for the server, not for a time: at most as long as a slow machine needs to end a cancelled query."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(200):
            if not _active(url, "%"):
                return True
            connection.execute("SELECT pg_sleep(0.05)")
    return False


def _active(url: str, query: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name LIKE 'tenure export%%' AND state = 'active' AND query LIKE %s",
            [query],
        ).fetchone()
    return row[0] if row else 0
