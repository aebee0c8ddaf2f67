"""Runs inside the worker: in its event loop or in one of its threads. Cheap, and without protection."""

import asyncio
import inspect

from tenure.core.run import Cancelled, Failed, Released, RunEnd, RunError
from tenure.engine.handlers import Isolation
from tenure.engine.isolation.work import StopReason, Work, run_error, stopped_by_handler, succeeded


class HandlerExitError(Exception):
    """A handler tried to end the worker."""


async def run_inside(work: Work) -> RunEnd:
    """Run a `task` or `thread` handler to its end.

    A coroutine that is asked to stop is cancelled after its kind's grace; a thread cannot be, so it is left to end by
    itself, and its result is dropped where the lease is lost meanwhile.
    """
    running = asyncio.create_task(_call(work))
    stopper = asyncio.create_task(_cancel_when_asked(work, running))
    try:
        async with asyncio.timeout(work.kind.time_limit_seconds):
            return succeeded(await asyncio.shield(running))
    except TimeoutError as error:
        if not running.done():
            work.stop(StopReason.TIME_LIMIT)
            running.cancel()
        return _ended(work, error)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  a handler may raise anything
        return _ended(work, error)
    finally:
        stopper.cancel()


async def _call(work: Work) -> object:
    context = work.context(is_cancelled=work.stop_asked.is_set)
    try:
        if work.kind.isolation is Isolation.THREAD:
            return await asyncio.to_thread(work.kind.handler, context)
        value = work.kind.handler(context)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:
        # It would end the event loop, and with it every other run.
        raise HandlerExitError(f"the handler called sys.exit({error.code!r})") from error


async def _cancel_when_asked(work: Work, running: "asyncio.Task[object]") -> None:
    await work.stop_asked.wait()
    if work.stop_reason is not StopReason.LOST:
        await asyncio.sleep(work.kind.cancel_grace_seconds)
    running.cancel()


def _ended(work: Work, error: BaseException) -> RunEnd:
    stopped = stopped_by_handler(error)
    match work.stop_reason:
        case StopReason.CANCEL if stopped:
            return Cancelled()
        case StopReason.RELEASE | StopReason.LOST if stopped:
            return Released(reason="the worker stops")
        case StopReason.TIME_LIMIT:
            message = f"the run took longer than {work.kind.time_limit_seconds:g} s"
            return Failed(error=RunError(error_class="TimeLimitError", message=message, code="time_limit"))
        case _:
            return Failed(error=run_error(error))
