"""Everything on one machine: PostgreSQL when none is given, the API, and workers; each a process of its own.

They die with the process that started them, however it ends, and a worker or API that ends by itself is started again.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

import msgspec

from tenure.core.errors import OperationError
from tenure.core.ids import TenantId
from tenure.store.database import Database
from tenure.store.migrate import migrate
from tenure.wiring import assemble
from tenure.wiring.embedded import EmbeddedServer, find_binaries
from tenure.wiring.settings import Settings

READY_SECONDS = 60.0
STOP_SECONDS = 40.0
RESTART_SECONDS = 1.0
"""A process that ends by itself is started again after this, so that one that cannot start does not spin."""
FIRST_KEYS_FILE = "first-keys.json"
LOG_DIR = "logs"


class StartError(OperationError):
    """A process of the installation did not start."""

    code = "start_failed"
    title = "Tenure did not start"
    what_to_do = "Read the log named, then start again."


class AlreadyRunningError(OperationError):
    """The data directory is in use by another `tenure up` or `tenure demo`."""

    code = "already_running"
    title = "Tenure runs here already"
    what_to_do = "Use that one, stop it first, or give this one a data directory of its own (TENURE_DATA_DIR)."


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstKeys:
    """The keys made at the first start, kept private in the data directory so that `tenure up` can show them again."""

    operator: str = field(repr=False)
    tenant: str = field(repr=False)
    tenant_id: str


@contextlib.contextmanager
def running_database(data_dir: Path, environ: Mapping[str, str], *, given: str | None) -> Iterator["RunningDatabase"]:
    """Tenure's database: the one `given`, or an embedded PostgreSQL that runs until the block ends."""
    if given is not None:
        yield RunningDatabase(url=given, server=None)
        return
    # Root's server runs as another account, which must be able to pass through; what lies inside is private itself.
    data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    with EmbeddedServer(data_dir / assemble.EMBEDDED_DIR, find_binaries(environ)) as server:
        if server.adopted:
            raise AlreadyRunningError(f"another process runs Tenure on {data_dir}")
        yield RunningDatabase(url=server.address.database_url, server=server)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDatabase:
    """Where Tenure's database is, and the embedded server if it is ours to look after."""

    url: str = field(repr=False)
    server: EmbeddedServer | None

    def watch(self) -> None:
        """Start an embedded server again that ended by itself; it recovers what was committed."""
        if self.server is not None and not self.server.running:
            self.server.start()


def prepare(settings: Settings, first_tenant: TenantId) -> FirstKeys:
    """Bring the schema up to date and make the first keys, once."""
    asyncio.run(migrate(assemble.database_settings(settings)))
    path = settings.data_dir / FIRST_KEYS_FILE
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=FirstKeys)
    first = asyncio.run(_issue_first_keys(settings, first_tenant))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(first))
    return first


async def _issue_first_keys(settings: Settings, first_tenant: TenantId) -> FirstKeys:
    async with Database(assemble.database_settings(settings)) as database:
        cabinet = assemble.KeyCabinet(database=database)
        operator = await cabinet.issue(None, name="first operator")
        tenant = await cabinet.issue(first_tenant, name="first tenant")
    return FirstKeys(operator=operator.text, tenant=tenant.text, tenant_id=first_tenant)


@dataclass(slots=True)
class _Process:
    """One process of the installation and how to start it again."""

    name: str
    command: list[str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    ended_at: float | None = None


class Installation:
    """The API and the workers of one machine. Use as a context manager on the main thread."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self.settings = settings
        self.log_dir = settings.data_dir / LOG_DIR
        self._environ = dict(environ)
        self.api_url = settings.api.base_url(settings.api.port)
        names = ["api", *(f"worker-{number}" for number in range(1, settings.worker.processes + 1))]
        self._processes = [self._describe(name) for name in names]

    def __enter__(self) -> Self:
        self.log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            for process in self._processes:
                self._start(process)
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return [
            process.process.pid
            for process in self._processes
            if process.name != "api" and process.process is not None and process.process.poll() is None
        ]

    def watch(self) -> None:
        """Start again what ended by itself; call it a few times a second."""
        for process in self._processes:
            if process.process is not None and process.process.poll() is not None:
                process.ended_at = process.ended_at or time.monotonic()
                if time.monotonic() - process.ended_at >= RESTART_SECONDS:
                    self._start(process)

    def stop(self) -> None:
        """Ask everything to finish, workers first; kill what does not within its time. Nothing is left running."""
        for names in ({process.name for process in self._processes} - {"api"}, {"api"}):
            running = [process.process for process in self._processes if process.name in names and process.process]
            _stop_all(running)

    def _describe(self, name: str) -> _Process:
        command = [sys.executable, "-m", "tenure.cli.main", name.partition("-")[0], "--parent", str(os.getpid())]
        return _Process(name, command, self.log_dir / f"{name}.log")

    def _start(self, process: _Process) -> None:
        process.ended_at = None
        with process.log.open("ab") as log:
            # A session of its own: Ctrl-C reaches this process only, which then stops the others in order.
            process.process = subprocess.Popen(  # noqa: S603  our own interpreter and module
                process.command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        api = self._processes[0]
        while not _answers(f"{self.api_url}/readyz"):
            if api.process is None or api.process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"the API did not start; the end of {api.log}:\n{_tail(api.log)}")
            time.sleep(0.05)


def choose_port(host: str, wanted: int, *, fixed: bool) -> int:
    """The wanted port; where it is taken and not `fixed`, a free one. Raises `StartError` where it is fixed."""
    with contextlib.suppress(OSError):
        return _bind(host, wanted)
    if fixed:
        raise StartError(f"port {wanted} on {host} is in use; choose another with --port")
    return _bind(host, 0)


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:  # noqa: S310  our own loopback address
            return bool(answer.status == 200)  # noqa: PLR2004
    except (URLError, OSError):
        return False


def _stop_all(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])
