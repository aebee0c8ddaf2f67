import pytest
from source_server import fresh_database, running_server


@pytest.fixture(scope="session")
def source_server():
    with running_server() as url:
        yield url


@pytest.fixture
def source_url(source_server):
    """An empty database of a PostgreSQL that Tenure reads from."""
    with fresh_database(source_server) as url:
        yield url
