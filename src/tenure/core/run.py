"""How one attempt ended: what a worker reports, and the record that stays."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tenure.core.ids import JobId, TenantId


class RunOutcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LEASE_EXPIRED = "lease_expired"
    RELEASED = "released"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run failed. `code` is one of `core.errors` or the handler's own; texts are already bounded."""

    error_class: str
    message: str
    code: str
    phase: str | None = None
    traceback: str | None = None
    retryable: bool = True
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What the run's process used, as far as it is known."""

    pid: int | None = None
    exit_signal: int | None = None
    peak_memory_bytes: int | None = None
    log_tail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The handler returned; `result` is JSON text."""

    result: bytes = b"null"
    usage: RunUsage = field(default_factory=RunUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The handler raised, or ran over a limit."""

    error: RunError
    usage: RunUsage = field(default_factory=RunUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The child process died without a word: it uses the crash budget, not the failure budget."""

    error: RunError
    usage: RunUsage = field(default_factory=RunUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Handed back: the worker shuts down or was asked to yield."""

    reason: str
    usage: RunUsage = field(default_factory=RunUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A cancel request was observed and obeyed."""

    usage: RunUsage = field(default_factory=RunUsage)


RunEnd = Succeeded | Failed | Crashed | Released | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One attempt, as kept for ever: append-only."""

    job_id: JobId
    attempt: int
    tenant_id: TenantId
    queue: str
    kind: str
    worker_id: str | None
    host: str | None
    pid: int | None
    queued_at: datetime
    claimed_at: datetime
    finished_at: datetime
    outcome: RunOutcome
    error_class: str | None
    error_code: str | None
    error_message: str | None
    error_phase: str | None
    traceback: str | None
    exit_signal: int | None
    peak_memory_bytes: int | None
    log_tail: str | None
    result: bytes | None
