import sys
from pathlib import Path

import pytest

# The server to read from is the one that the tests of sources start.
sys.path.insert(0, str(Path(__file__).parent.parent / "sources"))

from export_world import World, add_orders
from source_server import fresh_database

from tenure.objects.directory import DirectoryStore


@pytest.fixture(scope="session")
def source_server(postgres_url):
    return postgres_url


@pytest.fixture
def source_url(source_server):
    """An empty database of a PostgreSQL that Tenure reads from."""
    with fresh_database(source_server) as url:
        yield url


@pytest.fixture
def orders_url(source_url):
    add_orders(source_url)
    return source_url


@pytest.fixture
def world(orders_url, tmp_path):
    return World(url=orders_url, objects=DirectoryStore(tmp_path / "objects"))
