import pytest
from source_server import fresh_database


@pytest.fixture(scope="session")
def source_server(postgres_url):
    return postgres_url


@pytest.fixture
def source_url(source_server):
    """An empty database of a PostgreSQL that Tenure reads from."""
    with fresh_database(source_server) as url:
        yield url
