"""Kinds that treat their process badly, beyond what `tenure.testing.kinds` ships."""

import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tenure.engine.context import RunContext
from tenure.engine.handlers import Isolation, Kind, Kinds
from tenure.testing.kinds import QUICK

FACTORY = "rough_kinds:kinds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """What to do, where to write down who did it, and for how long."""

    does: str
    note: str = ""
    seconds: float = 60.0


def kinds() -> Kinds:
    return Kinds(
        Kind(
            name=f"rough_{isolation}",
            handler=_rough_async if isolation is Isolation.TASK else _rough,
            args_type=Rough,
            queue="test",
            isolation=isolation,
            retry=QUICK,
            lease_seconds=2.0,
            cancel_grace_seconds=0.3,
            time_limit_seconds=60.0,
        )
        for isolation in Isolation
    )


async def _rough_async(context: RunContext) -> object:
    return _rough(context)


def _rough(context: RunContext) -> object:
    args = context.args
    return _DEEDS[args.does](context, args)


def _note(args: Rough, *pids: int) -> None:
    """Written whole or not at all: whoever waits for the file may read it at once."""
    if args.note:
        draft = Path(f"{args.note}.draft")
        draft.write_text(" ".join(map(str, pids)))
        draft.replace(args.note)


def _hang(context: RunContext, args: Rough) -> object:
    """Deaf to every request, in the first attempt only."""
    if context.fence.attempt > 1:
        return "second attempt"
    _note(args, os.getpid())
    time.sleep(args.seconds)
    return "first attempt"


def _hang_with_grandchild(context: RunContext, args: Rough) -> object:
    _note(args, os.getpid(), _spawn(args.seconds))
    time.sleep(args.seconds)
    return None


def _die_leaving_grandchild(context: RunContext, args: Rough) -> object:
    _note(args, os.getpid(), _spawn(args.seconds))
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def _leave_daemon(context: RunContext, args: Rough) -> object:
    """A process of another session holds the channel and the log open, and nobody may kill it by group."""
    _note(args, _spawn(args.seconds, daemon=True))
    return "left one behind"


def _die_leaving_daemon(context: RunContext, args: Rough) -> object:
    _leave_daemon(context, args)
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def _spawn(seconds: float, *, daemon: bool = False) -> int:
    pid = os.fork()
    if pid == 0:
        if daemon:
            os.setsid()
        time.sleep(seconds)
        os._exit(0)
    return pid


def _burn(context: RunContext, args: Rough) -> object:
    end = time.monotonic() + args.seconds
    count = 0
    while time.monotonic() < end:
        count += 1
    return count


def _hold_gil(context: RunContext, args: Rough) -> object:
    ctypes.PyDLL(None).usleep(int(args.seconds * 1_000_000))  # PyDLL keeps the lock that CDLL would let go
    return "held"


def _checkpoint_then_die(context: RunContext, args: Rough) -> object:
    if context.resume_from is not None:
        return {"resumed": context.resume_from.decode(), "attempt": context.fence.attempt}
    context.checkpoint(b'{"page": 7}')
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def _checkpoint_then_stop(context: RunContext, args: Rough) -> object:
    if context.resume_from is not None:
        return {"resumed": context.resume_from.decode()}
    _note(args, os.getpid())
    while True:
        if context.is_cancelled():
            context.checkpoint(b'{"page": 9}')
            context.check_cancelled()
        time.sleep(0.01)


def _write_garbage(context: RunContext, args: Rough) -> object:
    """To every descriptor it has, the channel among them."""
    for descriptor in range(3, 1_000):
        try:
            os.write(descriptor, b"\x00\x00\x00\x05hello")
        except OSError:
            continue
    time.sleep(args.seconds)
    return None


_DEEDS = {
    "hang": _hang,
    "hang_with_grandchild": _hang_with_grandchild,
    "die_leaving_grandchild": _die_leaving_grandchild,
    "leave_daemon": _leave_daemon,
    "die_leaving_daemon": _die_leaving_daemon,
    "burn": _burn,
    "hold_gil": _hold_gil,
    "checkpoint_then_die": _checkpoint_then_die,
    "checkpoint_then_stop": _checkpoint_then_stop,
    "write_garbage": _write_garbage,
    "exit": lambda context, args: sys.exit("bye"),
    "return_nul": lambda context, args: {"text": "a\x00b"},
    "return_backslash": lambda context, args: {"text": "a\\u0000b"},
    "return_depth": lambda context, args: _deep(),
    "raise_surrogate": lambda context, args: _raise(ValueError("no such file: \udcff\x00")),
    "checkpoint_text": lambda context, args: context.checkpoint(b"not json"),
    "checkpoint_nul": lambda context, args: context.checkpoint(b'"\\u0000"'),
    "checkpoint_huge": lambda context, args: context.checkpoint(b'"' + b"x" * 300_000 + b'"'),
}


def _deep() -> object:
    value: object = None
    for _ in range(100_000):
        value = [value]
    return value


def _raise(error: Exception) -> object:
    raise error
