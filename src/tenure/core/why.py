"""The answer to "why is this late?", in words and numbers: what is known of a job, and what is told about it."""

from dataclasses import dataclass
from datetime import datetime

from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.place import ExpectedStart, Reason
from tenure.core.run import RunOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """A job as the store saw it at `seen_at`, by the database's clock."""

    id: JobId
    tenant_id: TenantId
    queue: str
    kind: str
    state: JobState
    priority: int
    seq: int
    attempt: int
    created_at: datetime
    queued_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None
    cancel_requested_at: datetime | None
    lease_expires_at: datetime | None
    host: str | None
    """Of the worker that runs it now."""
    pid: int | None
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Where the time of one attempt went. `outcome` None: it runs now."""

    attempt: int
    delayed_seconds: float
    """Until it was ready: scheduled for later, or waiting for a retry."""
    waited_seconds: float
    """Ready, until a worker took it."""
    ran_seconds: float
    outcome: RunOutcome | None
    error_code: str | None
    error_message: str | None
    error_phase: str | None
    host: str | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Where the time went, from enqueue to the end or to now. The three parts add up to `total_seconds`."""

    attempts: tuple[Attempt, ...]
    """In order; of very many, the newest."""
    total_seconds: float
    delayed_seconds: float
    waited_seconds: float
    ran_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who runs the job now."""

    host: str | None
    pid: int | None
    lease_seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneNumbers:
    """The tenant's lane. `cap` and `ceiling` None: no limit."""

    weight: float
    cap: int | None
    ceiling: int | None
    paused: bool
    running: int
    running_seconds: float
    """Worker-seconds that its running jobs have taken so far."""
    estimate_seconds: float
    """Expected worker-seconds of its next run."""
    virtual_time: float
    lead_seconds: float
    """Worker-seconds by which it is ahead of the lane whose turn is next; below 0: it is owed more."""
    share_used: float
    """Part of the slots in use that it holds now, of 1."""
    share_due: float | None
    """Part that its weight comes to among the tenants with work; None: too many to add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNumbers:
    """The queue, for operators: it tells about other tenants. `slots` None: as many as the workers have."""

    slots: int | None
    headroom: int
    paused: bool
    running: int
    free: int
    workers: int
    """That take this queue and were heard of lately."""
    worker_slots: int
    floor: float
    """Virtual time at which a waking lane starts."""
    tenants_ahead: int
    """Lanes that come before this place; counting stops at `limits.RIVAL_COUNT_MAX`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWhy:
    """Why a job is where it is. `also`: what else is switched off, and would hold it up next."""

    job: JobFacts
    reason: Reason
    also: tuple[Reason, ...]
    sentence: str
    position: int | None
    """In its lane, from 1, where it is ready; counting stops at `limits.WAITING_COUNT_MAX`."""
    due_in_seconds: float | None
    expected_start: ExpectedStart | None
    owner: Owner | None
    timeline: Timeline
    lane: LaneNumbers | None
    """This and the queue: None once it runs or has ended."""
    queue: QueueNumbers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWhy:
    """Why a tenant's next job in a queue is where it is. `waiting` stops counting at `limits.WAITING_COUNT_MAX`."""

    queue_name: str
    tenant_id: TenantId
    reason: Reason
    also: tuple[Reason, ...]
    sentence: str
    waiting: int
    expected_start: ExpectedStart | None
    lane: LaneNumbers
    queue: QueueNumbers
