"""Kinds that behave well and badly on purpose, for tests of the engine: each named for what it does."""

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass

from tenure.core.errors import QueryTimeoutError, RowLimitExceededError
from tenure.core.retry import RetryPolicy
from tenure.engine.context import RunContext
from tenure.engine.handlers import Isolation, Kind, Kinds
from tenure.store.progress import Progress

QUICK = RetryPolicy(base_seconds=0.05, cap_seconds=0.1)
FACTORY = "tenure.testing.kinds:kinds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a scripted job does: sleep in small steps, then end as `then` says."""

    seconds: float = 0.0
    then: str = "return"


def kinds() -> Kinds:
    """Every scripted kind, once for each isolation."""
    return Kinds(
        Kind(
            name=f"script_{isolation}",
            handler=_async_script if isolation is Isolation.TASK else _script,
            args_type=Script,
            queue="test",
            isolation=isolation,
            retry=QUICK,
            lease_seconds=2.0,
            cancel_grace_seconds=0.5,
            time_limit_seconds=5.0,
        )
        for isolation in Isolation
    )


def _script(context: RunContext) -> object:
    end = time.monotonic() + context.args.seconds
    step = 0
    while time.monotonic() < end:
        step += 1
        context.report(Progress(done=step, phase="sleep"))
        if context.args.then != "ignore_cancel":
            context.check_cancelled()
        time.sleep(0.02)
    return _end(context)


async def _async_script(context: RunContext) -> object:
    if context.args.then == "swallow_cancel":
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(context.args.seconds)
                return "much too late"
    await asyncio.sleep(context.args.seconds)
    return _end(context)


def _end(context: RunContext) -> object:  # noqa: C901, PLR0911, PLR0912  one line for each behaviour
    match context.args.then:
        case "return" | "ignore_cancel":
            return {"attempt": context.fence.attempt, "pid": os.getpid()}
        case "fail":
            raise QueryTimeoutError("scripted failure")
        case "fail_for_good":
            raise RowLimitExceededError("scripted permanent failure")
        case "fail_once":
            if context.fence.attempt == 1:
                raise QueryTimeoutError("scripted first failure")
            return "second time lucky"
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "die_once":
            if context.fence.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return "survived"
        case "exit":
            os._exit(0)
        case "system_exit":
            raise SystemExit(3)
        case "huge":
            return "x" * 2_000_000
        case "not_json":
            return object()
        case "shout":
            print("y" * 10_000_000, "last words")  # noqa: T201  the log tail is what is tested
            return None
        case "checkpoint":
            context.checkpoint(b'{"step":1}')
            time.sleep(1.0)
            return None
        case "grandchild":
            if os.fork() == 0:
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
    raise ValueError(f"no such script: {context.args.then}")
