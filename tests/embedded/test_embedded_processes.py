"""What happens between processes: a killed owner, two owners at once, another user."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from test_embedded_server import ask, keep_row, processes_in, wait_until

import tenure

# Starts, tells, and stops when its standard input ends.
CHILD = """
import json, os, sys
from pathlib import Path
from tenure.wiring.embedded import EmbeddedServer, find_binaries
from tenure.wiring.embedded.throwaway import FAST_SETTINGS
data_dir, fallback_dir = map(Path, sys.argv[1:])
server = EmbeddedServer(data_dir, find_binaries(os.environ), settings=FAST_SETTINGS, fallback_dir=fallback_dir)
address = server.start()
print(json.dumps({"url": address.database_url, "adopted": server.adopted}), flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture
def spawn(place):
    """Children that run CHILD on one data directory; none outlives the test."""
    children = []

    def make(python=sys.executable, data_dir=place / "data", **options):
        child = subprocess.Popen(
            [python, "-c", CHILD, data_dir, place / "fallback"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        children.append(child)
        return child

    yield make
    for child in children:
        child.kill()
        child.communicate()
    cluster = (place / "data" / "server" / "cluster").resolve()
    wait_until(lambda: not processes_in(cluster))


def told(child):
    return json.loads(child.stdout.readline())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")
def test_a_killed_owner_takes_the_server_with_it_and_the_rows_are_kept(seeded, spawn, make_server):
    owner = spawn()
    keep_row(told(owner)["url"])
    cluster = seeded / "server" / "cluster"
    owner.kill()
    wait_until(lambda: not processes_in(cluster))
    assert not (cluster / "postmaster.pid").exists()  # it shut down in order
    assert ask(make_server().start().database_url, "SELECT answer FROM kept") == 42


def test_a_start_right_after_the_owner_was_killed_gets_a_server_that_stays(seeded, spawn, make_server):
    owner = spawn()
    keep_row(told(owner)["url"])
    owner.kill()
    owner.wait()  # it is gone, its server is on the way out
    server = make_server()
    address = server.start()
    assert not server.adopted
    assert ask(address.database_url, "SELECT answer FROM kept") == 42
    assert server.running


def test_of_two_that_start_at_once_one_owns_the_server_and_the_other_adopts_it(spawn):
    children = [spawn(), spawn()]
    stories = [told(child) for child in children]
    assert sorted(story["adopted"] for story in stories) == [False, True]
    assert stories[0]["url"] == stories[1]["url"]
    guest = children[stories[0]["adopted"] is False]
    guest.communicate(timeout=60)
    assert ask(stories[0]["url"], "SELECT 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_runs_it_alike_and_privately(place, spawn):
    nobody = pwd.getpwnam("nobody")
    source = Path(tenure.__file__).parent.parent
    packages = Path(psycopg.__file__).parent.parent
    python = next((path for path in (sys.executable, "/usr/bin/python3") if usable(path, nobody, source)), None)
    if python is None:
        pytest.skip("no interpreter that another user can run with this source tree")
    place.chmod(0o755)
    home = place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    child = spawn(python, home / "data", **become(nobody), env=environment(source, packages))
    story = told(child)
    assert ask(story["url"], "SELECT current_user") == "tenure"
    for name, expected in {"": 0o700, "password": 0o600, "server/cluster": 0o700}.items():
        found = (home / "data" / name).stat()
        assert (found.st_mode & 0o777, found.st_uid) == (expected, nobody.pw_uid)
    child.communicate(timeout=60)
    assert child.returncode == 0
    assert not processes_in(home / "data" / "server" / "cluster")
    assert home.stat().st_mode & 0o777 == 0o700


def become(user):
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


def environment(*paths):
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, paths))}


def usable(python, user, source):
    script = "import sys; assert sys.version_info >= (3, 11); import tenure.wiring.embedded"
    try:
        done = subprocess.run(
            [python, "-c", script], **become(user), env=environment(source), capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
