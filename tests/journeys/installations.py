"""Whole installations, as a person runs them: the real command, real processes, a folder of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

WAIT_SECONDS = 90


class Up:
    """A running `tenure up` and what it printed."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.log = folder / "up.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenure.cli.main", "up", "--workers", "2", *arguments],
                cwd=folder,
                env=clean_environ(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: "Ctrl-C" in self.text or self.process.poll() is not None)

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        return re.search(r"http://[\d.]+:\d+", self.text)[0]

    @property
    def tenant_key(self) -> str:
        return re.search(r"Tenant key .*?(tnr_live_\w+)", self.text)[1]

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        request = urllib.request.Request(
            path if path.startswith("http") else self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.tenant_key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def export(self, **request: object) -> dict:
        """Ask for an export and wait until it has ended."""
        status, asked = self.ask("POST", "/v1/exports", {"dataset": "members", **request})
        assert status == 202, asked
        return self.wait_export(asked["job_id"])

    def wait_export(self, export_id: str) -> dict:
        def ended() -> dict | None:
            _, export = self.ask("GET", f"/v1/exports/{export_id}")
            return export if export["status"] not in ("queued", "running") else None

        return wait_for(ended)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WAIT_SECONDS)


def wait_for(ready: Callable[[], object]):
    """The first true answer; connections refused on the way are part of waiting."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            if value := ready():
                return value
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def processes_of(folder: Path) -> list[int]:
    """Processes that mention the folder: command line, working folder or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            where = str((entry / "cwd").readlink())
        except OSError:
            continue
        if str(folder).encode() in words or where.startswith(str(folder)):
            found.append(int(entry.name))
    return found


def clean_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PRODUCT_"))}
