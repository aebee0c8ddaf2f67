"""Whole installations with real processes: what a newcomer does, and the worst that can happen to them."""

import gzip
import hashlib
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from installations import Up, clean_environ, processes_of, wait_for

pytestmark = pytest.mark.timeout(300)


def test_up_serves_an_export_keeps_it_over_a_restart_and_leaves_nothing_running(folder):
    up = Up(folder)
    export = up.export(compression="gzip")
    stored = urllib.request.urlopen(export["download_url"], timeout=30).read()
    code = up.stop()
    left = processes_of(folder)
    again = Up(folder)
    _, kept = again.ask("GET", f"/v1/exports/{export['job_id']}")
    again.stop()

    assert "succeeded" == export["status"]
    assert [hashlib.sha256(stored).hexdigest()] == [
        f["sha256"] for f in export["files"] if f["name"] == "members.csv.gz"
    ]
    assert export["rows"] == gzip.decompress(stored).count(b"\n") - 1
    assert (0, []) == (code, left)
    assert ("succeeded", export["manifest_sha256"]) == (kept["status"], kept["manifest_sha256"])
    assert up.tenant_key == again.tenant_key


def test_killing_up_ends_everything_and_the_next_start_recovers(folder):
    up = Up(folder)
    export = up.export()
    up.kill()
    wait_for(lambda: not processes_of(folder))
    again = Up(folder)
    _, kept = again.ask("GET", f"/v1/exports/{export['job_id']}")
    another = again.export()
    again.stop()

    assert ("succeeded", "succeeded") == (kept["status"], another["status"])


def test_a_killed_postgres_is_started_again_and_work_goes_on(folder):
    up = Up(folder)
    before = up.export()
    postmaster = int((folder / ".tenure/postgres/server/cluster/postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    wait_for(lambda: up.ask("GET", "/v1/exports")[0] == 200)
    _, kept = up.ask("GET", f"/v1/exports/{before['job_id']}")
    after = up.export()
    code = up.stop()

    assert ("succeeded", "succeeded", 0) == (kept["status"], after["status"], code)


def test_a_killed_worker_and_a_killed_api_are_started_again(folder):
    up = Up(folder)
    for name in (b"worker", b"api"):
        for pid in processes_of(folder):
            if b"tenure.cli.main\0" + name in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    wait_for(lambda: up.ask("GET", "/v1/exports")[0] == 200)
    export = up.export()

    assert "succeeded" == export["status"]
    assert 0 == up.stop()


@pytest.mark.parametrize("flags", [(), ("--crash",)])
def test_the_demo_ends_well(folder, flags):
    demo = subprocess.run(
        [sys.executable, "-m", "tenure.cli.main", "demo", *flags],
        cwd=folder,
        env=clean_environ(),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert 0 == demo.returncode, demo.stdout + demo.stderr
    assert demo.stdout.splitlines()[-1].startswith("demo ok: 311467 rows, ")
    assert demo.stdout.splitlines()[-1].endswith(" bytes, sha256 verified")
    assert [] == processes_of(folder)
    if flags:
        assert "1 lease_expired" in demo.stdout
        assert "2 succeeded" in demo.stdout
