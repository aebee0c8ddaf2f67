"""A process that must not outlive the one that started it."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> bool:
    """Ask the kernel to kill this process when the process `parent` ends (Linux). False: it is gone already.

    The signal comes when the *thread* that started this process ends, so start it from a main thread.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent
