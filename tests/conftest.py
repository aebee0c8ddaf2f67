"""A real PostgreSQL for every test that asks: one server for each test process, one database for each test."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from tenure.store.database import Database, DatabaseSettings
from tenure.store.migrate import migrate
from tenure.wiring.embedded import find_binaries, throwaway_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Superuser's URL of an empty database on a server of this test process."""
    with throwaway_server(find_binaries(os.environ), {"max_connections": "300"}) as server:
        yield server.address.database_url


@pytest.fixture(scope="session")
def template(postgres_url: str) -> str:
    """Name of a database with Tenure's schema in it, to be copied."""
    _execute(postgres_url, "CREATE DATABASE tenure_template")
    asyncio.run(migrate(DatabaseSettings(url=_with_database(postgres_url, "tenure_template"))))
    return "tenure_template"


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """URL of a database of this test's own, with nothing in it."""
    yield from _own_database(postgres_url, "template1")


@pytest.fixture
def database_url(postgres_url: str, template: str) -> Iterator[str]:
    """URL of a database of this test's own, with Tenure's schema in it."""
    yield from _own_database(postgres_url, template)


@pytest.fixture
def database_settings(database_url: str) -> DatabaseSettings:
    return DatabaseSettings(url=database_url)


@pytest.fixture
async def database(database_settings: DatabaseSettings) -> AsyncIterator[Database]:
    async with Database(database_settings) as database:
        yield database


def _own_database(postgres_url: str, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _execute(postgres_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _with_database(postgres_url, name)
    _execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


def _with_database(url: str, name: str) -> str:
    return psycopg.conninfo.make_conninfo(url, dbname=name)
