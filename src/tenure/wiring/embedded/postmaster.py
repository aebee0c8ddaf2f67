"""What a running server says about itself, in the file postmaster.pid of its data directory.

The lines are those of PostgreSQL's `src/include/utils/pidfile.h`: process id, data directory, start time, port,
socket directory, listen address, shared memory, status. `pg_ctl` decides "ready" from the same status line.
"""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """The main process of a server, as far as its file tells."""

    pid: int
    port: int
    socket_dir: Path
    ready: bool


def read_postmaster(cluster: Path) -> Postmaster | None:
    """The server that last started in `cluster`; None when there is none, or it has not said all yet."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(lines) < LINES:
        return None
    return Postmaster(
        pid=int(lines[0]),
        port=int(lines[3]),
        socket_dir=Path(lines[4]),
        ready=lines[7].strip() == "ready",
    )


def find_running(cluster: Path) -> Postmaster | None:
    """The ready server of `cluster`, if it truly is one: the file may be left from a crash, its id reused."""
    postmaster = read_postmaster(cluster)
    return postmaster if postmaster is not None and postmaster.ready and _answers(postmaster) else None


def _answers(postmaster: Postmaster) -> bool:
    """Whether that very process listens on the socket, which lies in a directory only its account can write."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(postmaster.socket_dir / f".s.PGSQL.{postmaster.port}"))
        except OSError:
            return False
        if not hasattr(socket, "SO_PEERCRED"):  # elsewhere than on Linux the private directory has to be enough
            return True
        who = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid: int = struct.unpack("3i", who)[0]
        return pid == postmaster.pid
