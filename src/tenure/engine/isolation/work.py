"""One claimed job on its way through an isolation, and the words both sides use."""

import asyncio
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.errors import DeliveryFailedError, FieldProblem, InvalidInputError, TenureError
from tenure.core.job import Claim
from tenure.core.run import Failed, RunEnd, RunError, RunUsage, Succeeded
from tenure.engine.context import RunCancelledError, RunContext
from tenure.engine.handlers import Kind
from tenure.store.progress import Progress

# An escaped NUL: a `\u0000` whose backslash is not itself escaped. `jsonb` refuses it.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class StopReason(StrEnum):
    """Why a run is asked to stop before it is done."""

    CANCEL = "cancel"
    RELEASE = "release"
    LOST = "lost"
    TIME_LIMIT = "time_limit"


@dataclass(slots=True, kw_only=True)
class Work:
    """A claim with its kind, the way back for reports, and the way in for a request to stop."""

    claim: Claim
    kind: Kind
    report: Callable[[Progress], None]
    checkpoint: Callable[[bytes], None]
    stop_reason: StopReason | None = None
    stop_asked: asyncio.Event = field(default_factory=asyncio.Event)
    lease_lost: asyncio.Event = field(default_factory=asyncio.Event)
    on_stop: Callable[[StopReason], None] | None = None
    """Called with each reason, from the worker's loop."""

    def stop(self, reason: StopReason) -> None:
        """Ask the run to stop. The first reason stays, but a lost lease overrides all: nothing may be written then."""
        if self.stop_reason is None or reason is StopReason.LOST:
            self.stop_reason = reason
        if reason is StopReason.LOST:
            self.lease_lost.set()
        self.stop_asked.set()
        if self.on_stop is not None:
            self.on_stop(reason)

    def context(self, *, is_cancelled: Callable[[], bool]) -> RunContext:
        return RunContext(
            fence=self.claim.fence,
            tenant_id=self.claim.tenant_id,
            args=decode_args(self.claim, self.kind),
            resume_from=self.claim.checkpoint,
            report=self.report,
            checkpoint=lambda value: self.checkpoint(checked_checkpoint(value)),
            is_cancelled=is_cancelled,
        )


def decode_args(claim: Claim, kind: Kind) -> Any:
    return msgspec.json.decode(claim.args, type=kind.args_type)


def checked_checkpoint(value: bytes) -> bytes:
    """The checkpoint as given; raises inside the handler where the database could not keep it."""
    problem = None
    if len(value) > limits.CHECKPOINT_BYTES_MAX:
        problem = f"{len(value)} bytes, at most {limits.CHECKPOINT_BYTES_MAX}"
    elif _NUL.search(value):
        problem = "it holds a NUL character"
    else:
        try:
            msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            problem = f"not JSON: {error}"
    if problem is not None:
        raise InvalidInputError(FieldProblem(pointer="/checkpoint", detail=problem))
    return value


def succeeded(value: Any, usage: RunUsage | None = None) -> RunEnd:
    """End of a run whose handler returned; a result that is too large or not JSON fails the run for good."""
    usage = usage or RunUsage()
    try:
        result = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return Failed(error=_permanent("result_not_json", f"the result is not JSON: {error}"), usage=usage)
    if _NUL.search(result):
        detail = "the result holds a NUL character, which the database cannot keep"
        return Failed(error=_permanent("result_not_json", detail), usage=usage)
    if len(result) > limits.RESULT_BYTES_MAX:
        detail = f"the result has {len(result)} bytes, at most {limits.RESULT_BYTES_MAX}"
        return Failed(error=_permanent("result_too_large", detail), usage=usage)
    return Succeeded(result=result, usage=usage)


def run_error(error: BaseException) -> RunError:
    """What a run record keeps of an exception, bounded. Exceptions of no known kind are retryable."""
    known = error if isinstance(error, TenureError) else None
    # Of an error of ours the cause is left out: a driver's words may quote rows.
    text = "".join(traceback.format_exception(error, chain=known is None))
    return RunError(
        error_class=type(error).__name__,
        message=cut(str(error) or type(error).__name__, limits.MESSAGE_CHARS_MAX),
        code=known.code if known else "handler_failed",
        phase=getattr(known, "phase", None),
        traceback=cut(text, limits.TRACEBACK_CHARS_MAX),
        retryable=known.retryable if known else not isinstance(error, msgspec.ValidationError),
        retry_after_seconds=error.retry_after_seconds if isinstance(error, DeliveryFailedError) else None,
    )


def stopped_by_handler(error: BaseException) -> bool:
    return isinstance(error, RunCancelledError | asyncio.CancelledError)


def cut(text: str, chars_max: int) -> str:
    """Bound a text, keeping its end, where the cause stands, and saying that it was cut."""
    mark = "[cut] "
    # PostgreSQL's text holds every character but NUL, and no lone surrogate, as names of files bring them.
    text = text.replace("\x00", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
    return text if len(text) <= chars_max else mark + text[-(chars_max - len(mark)) :]


def _permanent(code: str, message: str) -> RunError:
    return RunError(error_class="ResultError", message=message, code=code, retryable=False)
