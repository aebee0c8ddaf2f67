"""One real server for the tests that only look; the others make their own below a directory of their own."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tenure.wiring.embedded import EmbeddedServer, find_binaries, throwaway_server
from tenure.wiring.embedded.throwaway import FAST_SETTINGS


@pytest.fixture(scope="session")
def binaries():
    return find_binaries(os.environ)


@pytest.fixture(scope="session")
def shared(binaries):
    with throwaway_server(binaries) as server:
        yield server


@pytest.fixture
def place():
    """A directory that root's account can pass through; pytest's own are private to the user who runs it."""
    directory = Path(tempfile.mkdtemp(prefix="tenure-test-", dir="/tmp"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def seed(binaries):
    """A stopped server's data; a copy costs a twentieth of an initdb."""
    with throwaway_server(binaries) as server:
        server.stop()
        yield server.data_dir


@pytest.fixture
def seeded(place, seed):
    """A data directory that has had a server before."""
    subprocess.run(["cp", "-a", seed, place / "data"], check=True)
    return place / "data"


@pytest.fixture
def make_server(place, binaries):
    """Servers, by default on a data directory that does not exist yet; all are stopped at the end."""
    made = []

    def make(data_dir=place / "data", binaries=binaries, **options):
        options.setdefault("settings", FAST_SETTINGS)
        server = EmbeddedServer(data_dir, binaries, **{"fallback_dir": place / "fallback", **options})
        made.append(server)
        return server

    yield make
    for server in made:
        server.stop()
