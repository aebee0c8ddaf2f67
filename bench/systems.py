"""The systems side by side: each a script of its own, in an environment of its own, driven by the same commands."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from servers import BenchServer, database_name
from tally import Tally

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
READY_SECONDS = 120.0
STALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One system under test and the settings it is run with. `jobs_share`: of the jobs the fast ones get."""

    name: str
    work: tuple[str, ...]
    trials: tuple[tuple[str, ...], ...] = ()
    """Settings to choose the best of, by a short trial, before anything is measured."""
    jobs_share: float = 1.0
    is_peer: bool = True

    def with_settings(self, settings: tuple[str, ...]) -> "System":
        return replace(self, work=settings)


TENURE = System(
    name="tenure",
    work=("--slots", "500"),
    trials=(("--slots", "200"), ("--slots", "500"), ("--slots", "1000")),
    is_peer=False,
)
PGQUEUER = System(
    name="pgqueuer",
    work=("--batch", "500"),
    trials=(("--batch", "100"), ("--batch", "500"), ("--batch", "1000")),
)
PROCRASTINATE = System(
    name="procrastinate",
    work=("--concurrency", "20"),
    trials=(("--concurrency", "5"), ("--concurrency", "20"), ("--concurrency", "100")),
    jobs_share=0.1,
)


def prepare_peer(system: System) -> None:
    """Install a peer into build/bench/venvs, once for each version of its list."""
    pins = HERE / "peers" / f"{system.name}.txt"
    folder = _environment(system)
    mark = folder / f".ready-{hashlib.sha256(pins.read_bytes()).hexdigest()[:16]}"
    if mark.exists():
        return
    print(f"Installing {system.name} into {folder} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    command = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-r", pins]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{system.name} cannot be installed:\n{done.stderr[-4_000:]}")
    mark.touch()


def run_side(system: System, command: str, url: str, *options: str) -> dict[str, Any]:
    """One command to its end; its last line of output is its answer."""
    done = subprocess.run(
        _command(system, command, url, *options), env=_env(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{system.name} {command} failed:\n{done.stderr[-4_000:]}")
    lines = done.stdout.splitlines()
    return dict(json.loads(lines[-1])) if lines else {}


def new_database(server: BenchServer, system: System) -> str:
    """URL of a database of the system's own, with its tables and no jobs."""
    if system.name not in server.templates:
        url = server.database(system.name)
        run_side(system, "setup", url)
        server.templates[system.name] = database_name(url)
    return server.database(system.name, template=server.templates[system.name])


@dataclass(slots=True, kw_only=True)
class Workers:
    """Worker processes of one system at work, and what they have done so far."""

    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    stop_seconds: float = 30.0

    def done(self) -> int:
        return sum(tally.count() for tally in self.tallies)

    def instants(self) -> list[float]:
        return sorted(instant for tally in self.tallies for instant in tally.instants())

    def wait_done(self, count: int) -> None:
        """Until so many jobs are done; raises when nothing moves any more."""
        last, moved_at = -1, time.monotonic()
        while (done := self.done()) < count:
            now = time.monotonic()
            if done != last:
                last, moved_at = done, now
            dead = [process.returncode for process in self.processes if process.poll() is not None]
            if dead or now - moved_at > STALL_SECONDS:
                raise RuntimeError(f"workers stalled at {done} of {count} jobs; ended: {dead}")
            time.sleep(0.005)

    def start(self, system: System, url: str, folder: Path, *, capacity: int, options: Sequence[str] = ()) -> None:
        path = folder / f"tally-{len(self.tallies)}"
        self.tallies.append(Tally(path, capacity=capacity))
        command = _command(system, "work", url, *system.work, *options, "--tally", str(path))
        self.processes.append(subprocess.Popen(command, env=_env(), stdout=subprocess.PIPE, text=True))

    def wait_ready(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("a worker ended before it was ready")

    def stop(self) -> None:
        """By process id, politely, then not."""
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + self.stop_seconds
        for process in self.processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def at_work(
    system: System, url: str, *, capacity: int, processes: int = 1, options: Sequence[str] = ()
) -> Iterator[Workers]:
    """Worker processes, stopped at the end whatever happens."""
    workers = Workers()
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        try:
            for _ in range(processes):
                workers.start(system, url, Path(folder), capacity=capacity, options=options)
            workers.wait_ready()
            yield workers
        finally:
            workers.stop()


def _environment(system: System) -> Path:
    return BUILD / "venvs" / system.name


def _command(system: System, command: str, url: str, *options: str) -> list[str]:
    python = str(_environment(system) / "bin" / "python") if system.is_peer else sys.executable
    return [python, str(HERE / "sides" / f"{system.name}_side.py"), command, "--url", url, *options]


def _env() -> dict[str, str]:
    # A worker's child processes import the kinds by name.
    return {**os.environ, "PYTHONPATH": str(HERE / "sides")}
