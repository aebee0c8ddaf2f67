"""One PostgreSQL for all systems of a run: durable, the same settings for everybody, a database each."""

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from tenure.wiring.embedded import find_binaries, throwaway_server

SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
}
"""What differs from Tenure's embedded server; written into every report."""
WATCHED: Mapping[str, str] = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_planning": "on",
    "track_io_timing": "on",
}
"""Added where the server itself is profiled; it costs a little, so never where figures are taken."""


class BenchServer:
    """The server of one run: makes databases."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.version = query(url, "SHOW server_version")[0][0]
        self.templates: dict[str, str] = {}
        """System -> database with its tables and nothing in them."""
        self._numbers = itertools.count(1)

    def database(self, name: str, *, template: str = "template1") -> str:
        """URL of a new database, empty or a copy of another one that nobody uses now."""
        name = f"{name}_{next(self._numbers)}"
        execute(self.url, f"CREATE DATABASE {name} TEMPLATE {template}")
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    def drop(self, url: str) -> None:
        execute(self.url, f"DROP DATABASE {database_name(url)} WITH (FORCE)")

    def checkpoint(self) -> None:
        """So that a run does not pay for writing the pages of the one before it."""
        execute(self.url, "CHECKPOINT")


@contextmanager
def bench_server(extra: Mapping[str, str] | None = None) -> Iterator[BenchServer]:
    """A server for the length of a run, gone with its data at the end."""
    with throwaway_server(find_binaries(os.environ), {**SETTINGS, **(extra or {})}) as server:
        yield BenchServer(server.address.database_url)


def database_name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def execute(url: str, *statements: str, parameters: Mapping[str, object] | None = None) -> None:
    """Run statements one by one, each in a transaction of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement, parameters)


def query(url: str, statement: str, parameters: Mapping[str, object] | None = None) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchall()


def vacuum(url: str) -> None:
    """What autovacuum would have done by the time a queue has filled up."""
    execute(url, "VACUUM ANALYZE")


@contextmanager
def hold_snapshot(url: str) -> Iterator[None]:
    """Somebody's long report: a repeatable-read transaction that keeps its snapshot until the end."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class")
        yield
        connection.rollback()
