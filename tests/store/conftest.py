"""One database for all these tests, emptied for each: a new one each time would cost more than the tests."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from store_world import World

from tenure.store.database import DatabaseSettings
from tenure.store.migrate import migrate


@pytest.fixture(scope="session")
def store_settings(postgres_url: str) -> DatabaseSettings:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE store_tests")
    settings = DatabaseSettings(url=make_conninfo(postgres_url, dbname="store_tests"))
    asyncio.run(migrate(settings))
    return settings


@pytest.fixture
async def world(store_settings: DatabaseSettings) -> AsyncIterator[World]:
    async with World(store_settings) as world:
        await world.reset()
        yield world
