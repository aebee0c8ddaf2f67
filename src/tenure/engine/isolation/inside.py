"""Runs inside the worker: in its event loop or in one of its threads. Cheap, and without protection."""

import asyncio
import inspect

from tenure.core.run import Cancelled, Failed, Released, RunEnd, RunError
from tenure.engine.handlers import Isolation
from tenure.engine.isolation.work import StopReason, Work, run_error, stopped_by_handler, succeeded


class HandlerExitError(Exception):
    """A handler tried to end the worker."""


async def run_inside(work: Work) -> RunEnd:
    """Run a `task` or `thread` handler to its end, or to its time limit, or until a request to stop has run out.

    After a cancel the handler has its kind's grace; after a lost lease it has none. What does not end then is left
    behind, a thread or a coroutine that swallows its cancellation: its slot is free, and its result goes nowhere.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end_waiting(*_: object) -> None:
        if not over.done():
            over.set_result(None)

    def hurry(reason: StopReason) -> None:
        grace = 0.0 if reason is StopReason.LOST else work.kind.cancel_grace_seconds
        timers.append(loop.call_later(grace, end_waiting))

    timers = [loop.call_later(work.kind.time_limit_seconds, end_waiting)]
    running = loop.create_task(_call(work))
    running.add_done_callback(end_waiting)
    work.on_stop = hurry
    if work.stop_reason is not None:
        hurry(work.stop_reason)
    try:
        await over
    finally:
        work.on_stop = None
        for timer in timers:
            timer.cancel()
        if not running.done():
            running.cancel()
            running.add_done_callback(_forget)
    return _end(work, running)


def _end(work: Work, running: "asyncio.Task[object]") -> RunEnd:
    if not running.done():
        if work.stop_reason is None:
            work.stop(StopReason.TIME_LIMIT)
        return _ended(work, asyncio.CancelledError())
    try:
        return succeeded(running.result())
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  a handler may raise anything
        return _ended(work, error)


def _forget(running: "asyncio.Task[object]") -> None:
    """Look at what a run that was left behind ended with, so that asyncio does not complain of it."""
    if not running.cancelled():
        running.exception()


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
