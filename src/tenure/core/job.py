"""A durable unit of work, what is needed to put one in, and what a claim gives."""

from dataclasses import dataclass
from datetime import datetime

from tenure.core.ids import JobId, LeaseToken, TenantId
from tenure.core.lifecycle import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to enqueue. `id` is made by the client (UUIDv7), so a retried enqueue is idempotent."""

    id: JobId
    tenant_id: TenantId
    queue: str
    kind: str
    args: bytes
    """JSON text, at most `limits.ARGS_BYTES_MAX`."""
    priority: int = 0
    """Within the tenant's lane only: smaller goes first."""
    not_before: datetime | None = None
    start_deadline: datetime | None = None
    """Never started by then: `dead`."""
    unique_key: str | None = None
    """At most one unfinished job of this tenant holds the key."""
    max_attempts: int
    max_crashes: int
    lease_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What every write of a run must name. A write whose fence is no longer current changes nothing."""

    job_id: JobId
    attempt: int
    lease_token: LeaseToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to run one attempt of one job, until the lease lapses."""

    fence: Fence
    tenant_id: TenantId
    queue: str
    kind: str
    args: bytes
    lease_seconds: float
    failures: int
    max_attempts: int
    crashes: int
    max_crashes: int
    checkpoint: bytes | None = None
    """JSON text of the newest checkpoint of an earlier attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """A move that ended a run or a job, as its kind is told of it inside the transaction that made it."""

    job_id: JobId
    tenant_id: TenantId
    kind: str
    attempt: int
    state: JobState
    error_code: str | None = None
    error_message: str | None = None
    error_phase: str | None = None
    result: bytes | None = None
    """JSON text, when the job succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as people and surfaces see it."""

    id: JobId
    tenant_id: TenantId
    queue: str
    kind: str
    state: JobState
    priority: int
    attempt: int
    failures: int
    max_attempts: int
    crashes: int
    max_crashes: int
    releases: int
    not_before: datetime | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
