"""One PostgreSQL for all systems of a run: durable, the same settings for everybody, a database each."""

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
        self._numbers = itertools.count(1)

    def database(self, name: str) -> str:
        """URL of a new, empty database."""
        name = f"{name}_{next(self._numbers)}"
        execute(self.url, f"CREATE DATABASE {name}")
        return psycopg.conninfo.make_conninfo(self.url, dbname=name)

    def drop(self, url: str) -> None:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        execute(self.url, f"DROP DATABASE {name} WITH (FORCE)")

    def checkpoint(self) -> None:
        """So that a run does not pay for writing the pages of the one before it."""
        execute(self.url, "CHECKPOINT")


@contextmanager
def bench_server(extra: Mapping[str, str] | None = None) -> Iterator[BenchServer]:
    """A server for the length of a run, gone with its data at the end."""
    with throwaway_server(find_binaries(os.environ), {**SETTINGS, **(extra or {})}) as server:
        yield BenchServer(server.address.socket_url)


def execute(url: str, *statements: str) -> None:
    """Run statements one by one, each in a transaction of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def query(url: str, statement: str, parameters: Mapping[str, object] | None = None) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchall()
