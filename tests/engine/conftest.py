"""One database for all these tests, emptied for each."""

import asyncio
import os
from collections.abc import AsyncIterator

import psycopg
import pytest
import rough_kinds
from engine_parts import HERE, Engine
from psycopg.conninfo import make_conninfo

from tenure.core import limits
from tenure.store.database import Database, DatabaseSettings
from tenure.store.migrate import migrate
from tenure.testing import kinds as shipped_kinds

TABLES = ("jobs", "runs", "lane_events", "lanes", "queues", "workers", "job_progress", "checkpoints")


@pytest.fixture(autouse=True)
def busy_housekeeping(monkeypatch):
    """Chores come more often than in life, so that tests do not wait for them."""
    monkeypatch.setattr(limits, "REAP_SECONDS", 0.3)


@pytest.fixture(autouse=True)
def children_know_rough_kinds(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]))


@pytest.fixture(scope="session")
def engine_settings(postgres_url: str) -> DatabaseSettings:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE engine_tests")
    settings = DatabaseSettings(url=make_conninfo(postgres_url, dbname="engine_tests"))
    asyncio.run(migrate(settings))
    return settings


@pytest.fixture
async def engine_database(engine_settings: DatabaseSettings) -> AsyncIterator[Database]:
    async with Database(engine_settings) as database:
        async with database.transaction() as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            for table in TABLES:
                await connection.execute(f"DELETE FROM tenure.{table}".encode())
        yield database


@pytest.fixture
async def engine(engine_database: Database) -> Engine:
    """With the kinds that ship for tests."""
    return Engine(engine_database, shipped_kinds.kinds(), shipped_kinds.FACTORY)


@pytest.fixture
async def rough(engine_database: Database) -> Engine:
    """With kinds that treat their process badly."""
    return Engine(engine_database, rough_kinds.kinds(), rough_kinds.FACTORY)
