"""Start, adopt and stop the embedded server.

One process owns a data directory at a time, by a lock that the kernel drops when it dies. The owner runs the server
as its own child, and the child ends with it. A second process on the same directory waits until the first has its
server ready and then adopts it: uses it, and leaves it running.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded.account import child_environment
from tenure.wiring.embedded.binaries import PgBinaries
from tenure.wiring.embedded.cluster import DATABASE, ROLE, prepare_cluster
from tenure.wiring.embedded.home import (
    FALLBACK_DIR,
    LOOPBACK,
    Home,
    free_port,
    make_data_dir,
    open_home,
    reachable_binaries,
    remove_sockets,
    socket_dir,
)
from tenure.wiring.embedded.postmaster import find_running, read_postmaster

# A killed server's children hold its shared memory for a second or two; a busy machine may need much longer.
LINGER_SECONDS = 30.0
# Replaying the log after a crash takes as long as it takes; giving up early would only begin it anew.
RECOVERY_SECONDS = 300.0
POLL_SECONDS = 0.05
# Fast shutdown writes a checkpoint. Immediate shutdown does not, and PostgreSQL kills its children after 5 s of it.
STOP_STEPS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
PASSING_MARKS = (  # what a dead server's children, and a port taken since we looked, make PostgreSQL say
    "pre-existing shared memory block",
    'lock file "',
    "could not create any TCP/IP sockets",
)
TAIL_LINES = 15

# Small-machine values; what durability rests on (fsync, full_page_writes, synchronous_commit) is stated.
SETTINGS: Mapping[str, str] = {
    "cluster_name": "tenure",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "wal_compression": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",  # one a weekday, each overwritten a week later
    "log_truncate_on_rotation": "on",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """How to reach the server: over loopback by `database_url`, over a unix socket by `socket_url`."""

    port: int
    socket_dir: Path
    password: str = field(repr=False)

    @property
    def database_url(self) -> str:
        return f"postgresql://{ROLE}:{self.password}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def socket_url(self) -> str:
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{ROLE}:{self.password}@{host}:{self.port}/{DATABASE}"


def running_address(data_dir: Path) -> ServerAddress | None:
    """Address of the server that runs on a data directory now, whoever started it; None when none does."""
    running = find_running(data_dir / "server" / "cluster")
    if running is None:
        return None
    password = (data_dir / "password").read_text().strip()
    return ServerAddress(port=running.port, socket_dir=running.socket_dir, password=password)


class EmbeddedServer:
    """The PostgreSQL of one data directory. Start it on the main thread; it ends with the process at the latest.

    `settings` are PostgreSQL settings that come after, and so override, Tenure's own; with `fsync` off the data is
    also created without syncing. `fallback_dir` takes the data where root's account cannot reach `data_dir`.
    """

    def __init__(
        self,
        data_dir: Path,
        binaries: PgBinaries,
        *,
        settings: Mapping[str, str] | None = None,
        fallback_dir: Path = FALLBACK_DIR,
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.adopted = False
        self._binaries = binaries
        self._settings = dict(settings or {})
        self._fallback_dir = fallback_dir.absolute()
        self._home: Home | None = None
        self._owner_lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the server is up now, be it ours or adopted."""
        return find_running(self.data_dir / "server" / "cluster") is not None

    @property
    def address(self) -> ServerAddress:
        """The address of the running server."""
        address = running_address(self.data_dir)
        if address is None:
            raise EmbeddedPostgresError(f"The server of {self.data_dir} is not running. Hint: start it first.")
        return address

    def start(self) -> ServerAddress:
        """Make the server run and return its address; it is ready for connections then."""
        if threading.current_thread() is not threading.main_thread():
            # Linux sends the parent-death signal when the forking *thread* ends.
            raise EmbeddedPostgresError("start() was called from a side thread. Hint: call it on the main thread.")
        try:
            self.adopted = not self._become_owner()
            if not self.adopted:
                self._run()
            address = self.address
        except OSError as problem:
            self.stop()
            raise EmbeddedPostgresError(
                f"The embedded PostgreSQL in {self.data_dir} cannot be prepared: {problem}. "
                "Hint: give Tenure a data directory that it may write, on a disk with free space."
            ) from problem
        except BaseException:
            self.stop()
            raise
        return address

    def stop(self) -> None:
        """Shut our own server down and remove its sockets; leave an adopted one alone. May be called at any time."""
        self._end_process()
        if self._home is not None:
            remove_sockets(self._home)
            self._home = None
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None
        self.adopted = False

    def _become_owner(self) -> bool:
        """True with the owner lock held; False once another owner's server is ready to be adopted."""
        make_data_dir(self.data_dir)
        deadline = time.monotonic() + LINGER_SECONDS
        while self._owner_lock is None:
            self._owner_lock = _try_lock(self.data_dir)
            if self._owner_lock is None:
                if self.running:
                    return False
                _wait_before(deadline, "another Tenure process owns it, but its server is not ready", self.data_dir)
        return True

    def _run(self) -> None:
        """Run the server as our child, outlasting what a crash or a dead owner left."""
        if self._process is not None and self._process.poll() is None and self.running:
            return
        self._end_process()
        home = self._home = open_home(self.data_dir, self._fallback_dir)
        _end_unowned(home)
        binaries = reachable_binaries(home, self._binaries)
        prepare_cluster(home, binaries, durable=self._settings.get("fsync") != "off")
        sockets = socket_dir(home)
        deadline = time.monotonic() + LINGER_SECONDS
        while not self._launch(home, binaries, sockets):
            words = _last_words(self.data_dir)
            passing = any(mark in words for mark in PASSING_MARKS)
            _wait_before(deadline if passing else 0.0, "PostgreSQL ended while starting", self.data_dir)

    def _launch(self, home: Home, binaries: PgBinaries, sockets: Path) -> bool:
        """One try: True when the server is ready, False when it ended by itself."""
        settings = {
            **SETTINGS,
            "listen_addresses": LOOPBACK,
            "port": str(free_port(home.data_dir)),
            "unix_socket_directories": f'"{sockets}"',  # a list, in which an unquoted comma would separate
            "log_directory": str(home.log_dir),
            **self._settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (home.data_dir / "start.log").open("wb") as log:
            # A session of its own: Ctrl-C in the terminal is for Tenure, which stops the server last.
            self._process = subprocess.Popen(  # noqa: S603 - our own launcher with a program the resolver found
                home.account.command(binaries.postgres, "-D", home.cluster, *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=child_environment(),
                start_new_session=True,
            )
        deadline = time.monotonic() + RECOVERY_SECONDS
        while self._process.poll() is None:
            found = find_running(home.cluster)
            if found is not None and found.pid == self._process.pid:
                return True
            _wait_before(deadline, f"PostgreSQL was not ready after {RECOVERY_SECONDS:.0f} s", self.data_dir)
        return False

    def _end_process(self) -> None:
        process, self._process = self._process, None
        for step, patience_seconds in STOP_STEPS:
            if process is None or process.poll() is not None:
                return
            process.send_signal(step)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_seconds)


def erase(data_dir: Path) -> None:
    """Delete everything the embedded server keeps for `data_dir`, here and elsewhere. Refused while it is in use."""
    data_dir = data_dir.absolute()
    if not data_dir.exists():
        return
    lock = _try_lock(data_dir)
    if lock is None:
        raise EmbeddedPostgresError(f"{data_dir} is in use. Hint: stop the Tenure process that uses it first.")
    try:
        if (data_dir / "server").exists():
            _erase_home(open_home(data_dir))
        shutil.rmtree(data_dir / "programs", ignore_errors=True)
        for name in ("server", "password", "port", "start.log", "owner.lock"):
            (data_dir / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # what others put there stays
            data_dir.rmdir()
    finally:
        os.close(lock)


def _erase_home(home: Home) -> None:
    _end_unowned(home)
    remove_sockets(home)
    deadline = time.monotonic() + LINGER_SECONDS
    while home.server_dir.exists():  # a server on its way out deletes and writes files of its own meanwhile
        shutil.rmtree(home.server_dir, ignore_errors=True)
        _wait_before(deadline, f"{home.server_dir} cannot be deleted", home.data_dir)
    if home.server_dir.parent != home.data_dir.resolve():  # a shelter below the fallback directory
        shutil.rmtree(home.server_dir.parent)


def _try_lock(data_dir: Path) -> int | None:
    """The owner lock as an open file; None while another process, or another server object, holds it."""
    handle = os.open(data_dir / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _end_unowned(home: Home) -> None:
    """End a server whose owner is gone: it would not die with us, and has often been told to stop already."""
    left = find_running(home.cluster)
    if left is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(left.pid, signal.SIGINT)
    deadline = time.monotonic() + LINGER_SECONDS
    while (now := read_postmaster(home.cluster)) is not None and now.pid == left.pid:
        _wait_before(deadline, f"the server left by another process (id {left.pid}) does not stop", home.data_dir)


def _wait_before(deadline: float, reason: str, data_dir: Path) -> None:
    """Sleep a moment, or fail with `reason` and the server's last words when the deadline has passed."""
    if time.monotonic() >= deadline:
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL in {data_dir} cannot go on: {reason}. "
            f"Hint: the log in {data_dir / 'server' / 'log'} tells the cause; the last words:\n{_last_words(data_dir)}"
        )
    time.sleep(POLL_SECONDS)


def _last_words(data_dir: Path) -> str:
    """The end of what the last start wrote: first what came before its log file was open, then that file."""
    start_log = data_dir / "start.log"
    if not start_log.exists():
        return ""
    begun = start_log.stat().st_mtime
    logs = [path for path in (data_dir / "server" / "log").glob("*.log") if path.stat().st_mtime >= begun]
    texts = [path.read_text(errors="replace").splitlines()[-TAIL_LINES:] for path in (start_log, *logs)]
    return "\n".join(line for lines in texts for line in lines)
