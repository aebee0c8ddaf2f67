"""The last step before one of PostgreSQL's programs: give up root, arrange to die with the parent, exec.

It runs as a file of its own with an isolated interpreter (`python -I -S launch.py PARENT UID GID PROGRAM ...`),
started while still root, because the interpreter and this file may lie where the unprivileged account cannot reach.
So it imports the standard library only.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CAN_REACH = "can-reach"
PARENT_IS_GONE = 75


def launch_command(uid: int, gid: int, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` as the given account, bound to the life of the calling thread."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(uid), str(gid), *command]


def main(arguments: Sequence[str]) -> None:
    """Become the account and then the program; the process id stays."""
    parent, uid, gid, *command = arguments
    if os.geteuid() != int(uid):
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    os.umask(0o077)
    if command[0] == CAN_REACH:
        # The kernel's own answer, with access lists and all, which mode bits alone would not tell.
        sys.exit(not os.access(command[1], os.X_OK))
    die_with_parent(int(parent))
    os.execv(command[0], command)  # noqa: S606 - replacing this process is the purpose


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGINT (PostgreSQL's fast shutdown) when the parent ends. Linux only.

    It must come after setuid, which clears the request; exec of an ordinary program keeps it.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request was made, so no signal will come
        sys.exit(PARENT_IS_GONE)


if __name__ == "__main__":
    main(sys.argv[1:])
