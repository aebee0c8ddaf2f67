"""The JSON documents about queues, tenants and the reasons of jobs. OpenAPI comes from here."""

from datetime import datetime

import msgspec

from tenure.core.lifecycle import JobState
from tenure.core.place import Reason
from tenure.core.run import RunOutcome
from tenure.core.shares import FairnessReport, QueueShares, TenantShare
from tenure.core.tuning import LaneSettings, LaneView, QueueSettings, QueueView
from tenure.core.why import Attempt, JobWhy


class QueueSettingsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set for a queue. `slots` null: as many as its workers have."""

    queue: str
    slots: int | None
    headroom: int
    paused: bool


class QueueDocument(QueueSettingsDocument, frozen=True, kw_only=True):
    """A queue now. `waiting` stops counting at 1000; `workers` are those heard of in the last 30 seconds."""

    running: int
    waiting: int
    workers: int
    worker_slots: int


class QueueList(msgspec.Struct, frozen=True, kw_only=True):
    """All queues, by name."""

    items: tuple[QueueDocument, ...]


class LaneSettingsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set for a tenant in a queue. `cap` and `ceiling` null: no limit."""

    queue: str
    tenant: str
    weight: float
    cap: int | None
    ceiling: int | None
    paused: bool


class LaneDocument(LaneSettingsDocument, frozen=True, kw_only=True):
    """A tenant in a queue now. `waiting` stops counting at 1000.

    `lead_seconds`: worker-seconds by which it is ahead of the tenant whose turn is next; below 0, it is owed more.
    """

    running: int
    waiting: int
    lead_seconds: float
    estimate_seconds: float


class LaneList(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a queue's tenants, by id. `next_cursor` is null on the last page."""

    items: tuple[LaneDocument, ...]
    next_cursor: str | None


class ExpectedStartDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from now. `latest_seconds` null: nothing can be promised."""

    earliest_seconds: float
    latest_seconds: float | None


class AttemptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: until it was ready, in line, running. `outcome` null: it runs now. For operators: message, host."""

    attempt: int
    delayed_seconds: float
    waited_seconds: float
    ran_seconds: float
    outcome: RunOutcome | None
    error_code: str | None
    error_phase: str | None
    error_message: str | None
    host: str | None
    finished_at: datetime | None


class TimelineDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time went; the three parts add up to `total_seconds`."""

    attempts: tuple[AttemptDocument, ...]
    total_seconds: float
    delayed_seconds: float
    waited_seconds: float
    ran_seconds: float


class OwnerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs the job now."""

    host: str | None
    pid: int | None
    lease_seconds_left: float


class LaneNumbersDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant's account in the queue. Shares are parts of 1; `share_due` null: too many tenants to add up."""

    weight: float
    cap: int | None
    ceiling: int | None
    paused: bool
    running: int
    running_seconds: float
    estimate_seconds: float
    lead_seconds: float
    share_used: float
    share_due: float | None


class QueueNumbersDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The queue around the job."""

    slots: int | None
    headroom: int
    paused: bool
    running: int
    free: int
    workers: int
    worker_slots: int
    tenants_ahead: int


class WhyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is where it is. `lane`, `queue_numbers` and `owner` are for operators: they tell about others."""

    job_id: str
    tenant: str
    queue: str
    kind: str
    state: JobState
    attempt: int
    reason: Reason
    also: tuple[Reason, ...]
    sentence: str
    position: int | None
    due_in_seconds: float | None
    not_before: datetime | None
    cancel_requested_at: datetime | None
    expected_start: ExpectedStartDocument | None
    timeline: TimelineDocument
    lane: LaneNumbersDocument | None
    queue_numbers: QueueNumbersDocument | None
    owner: OwnerDocument | None


class TenantShareDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's part. Worker-seconds are those within the window; waits are of runs that began in it."""

    tenant: str
    weight: float
    worker_seconds: float
    share: float
    share_due: float
    runs: int
    running: int
    waiting: bool
    outcomes: dict[RunOutcome, int]
    wait_seconds_p50: float | None
    wait_seconds_p95: float | None
    wait_seconds_max: float | None
    first_waits_seconds: float | None


class QueueSharesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A queue. `jain_index`: 1 is worker time exactly by weight; a tenant with little work lowers it rightfully."""

    queue: str
    worker_seconds: float
    jain_index: float
    tenants: tuple[TenantShareDocument, ...]


class FairnessDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Queues that had work in the window. `is_complete` false: the smallest rows were left out."""

    since: datetime
    until: datetime
    queues: tuple[QueueSharesDocument, ...]
    is_complete: bool


def queue_settings_document(settings: QueueSettings) -> QueueSettingsDocument:
    return msgspec.convert(settings, QueueSettingsDocument, from_attributes=True)


def queue_document(view: QueueView) -> QueueDocument:
    return QueueDocument(
        queue=view.settings.queue,
        slots=view.settings.slots,
        headroom=view.settings.headroom,
        paused=view.settings.paused,
        running=view.running,
        waiting=view.waiting,
        workers=view.workers,
        worker_slots=view.worker_slots,
    )


def lane_settings_document(settings: LaneSettings) -> LaneSettingsDocument:
    return LaneSettingsDocument(
        queue=settings.queue,
        tenant=settings.tenant_id,
        weight=settings.weight,
        cap=settings.cap,
        ceiling=settings.ceiling,
        paused=settings.paused,
    )


def lane_document(view: LaneView) -> LaneDocument:
    settings = msgspec.structs.asdict(lane_settings_document(view.settings))
    return LaneDocument(
        **settings,
        running=view.running,
        waiting=view.waiting,
        lead_seconds=view.lead_seconds,
        estimate_seconds=view.estimate_seconds,
    )


def why_document(why: JobWhy, *, for_operator: bool) -> WhyDocument:
    """A tenant gets its own facts; an operator also those that tell about machines and other tenants."""
    timeline = msgspec.convert(why.timeline, TimelineDocument, from_attributes=True)
    if not for_operator:
        timeline = msgspec.structs.replace(timeline, attempts=tuple(map(_for_tenant, why.timeline.attempts)))
    job = why.job
    shown = why if for_operator else None
    return WhyDocument(
        job_id=str(job.id),
        tenant=job.tenant_id,
        queue=job.queue,
        kind=job.kind,
        state=job.state,
        attempt=job.attempt,
        reason=why.reason,
        also=why.also,
        sentence=why.sentence,
        position=why.position,
        due_in_seconds=why.due_in_seconds,
        not_before=job.not_before,
        cancel_requested_at=job.cancel_requested_at,
        expected_start=msgspec.convert(why.expected_start, ExpectedStartDocument | None, from_attributes=True),
        timeline=timeline,
        lane=msgspec.convert(shown and shown.lane, LaneNumbersDocument | None, from_attributes=True),
        queue_numbers=msgspec.convert(shown and shown.queue, QueueNumbersDocument | None, from_attributes=True),
        owner=msgspec.convert(shown and shown.owner, OwnerDocument | None, from_attributes=True),
    )


def fairness_document(report: FairnessReport) -> FairnessDocument:
    return FairnessDocument(
        since=report.since,
        until=report.until,
        queues=tuple(map(_queue_shares, report.queues)),
        is_complete=report.is_complete,
    )


def _for_tenant(attempt: Attempt) -> AttemptDocument:
    document = msgspec.convert(attempt, AttemptDocument, from_attributes=True)
    return msgspec.structs.replace(document, error_message=None, host=None)


def _queue_shares(shares: QueueShares) -> QueueSharesDocument:
    return QueueSharesDocument(
        queue=shares.queue,
        worker_seconds=shares.worker_seconds,
        jain_index=shares.jain_index,
        tenants=tuple(map(_tenant_share, shares.tenants)),
    )


def _tenant_share(share: TenantShare) -> TenantShareDocument:
    used = share.used
    return TenantShareDocument(
        tenant=used.tenant_id,
        weight=used.weight,
        worker_seconds=used.worker_seconds,
        share=share.share,
        share_due=share.share_due,
        runs=used.runs,
        running=used.running,
        waiting=used.waiting,
        outcomes=dict(used.outcomes),
        wait_seconds_p50=used.wait_seconds_p50,
        wait_seconds_p95=used.wait_seconds_p95,
        wait_seconds_max=used.wait_seconds_max,
        first_waits_seconds=used.first_waits_seconds,
    )
