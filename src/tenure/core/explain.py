"""Why a job, or a tenant in a queue, is where it is: decided here, from what the store saw."""

from datetime import datetime
from typing import assert_never

from tenure.core.ids import TenantId
from tenure.core.lifecycle import JobState
from tenure.core.place import ExpectedStart, Place, Reason, expected_start, hold_ups
from tenure.core.sentences import job_sentence, seconds_between, tenant_sentence
from tenure.core.tuning import limit_or_none
from tenure.core.why import Attempt, JobFacts, JobWhy, LaneNumbers, Owner, QueueNumbers, TenantWhy, Timeline


def explain_job(job: JobFacts, place: Place | None, attempts: tuple[Attempt, ...]) -> JobWhy:
    """Decide. `place` is needed for jobs that wait. `attempts` are the recorded ones, in order."""
    timeline = timeline_of(job, attempts)
    due_in = (job.not_before - job.seen_at).total_seconds() if job.not_before is not None else None
    reasons = _reasons(job, place)
    is_ready = job.state is JobState.QUEUED
    return JobWhy(
        job=job,
        reason=reasons[0],
        also=reasons[1:],
        sentence=job_sentence(reasons[0], job, place, timeline),
        position=place.ahead + 1 if place is not None and is_ready else None,
        due_in_seconds=due_in if job.state in {JobState.SCHEDULED, JobState.RETRY_WAIT} else None,
        expected_start=None if place is None else _start(place, 0.0 if is_ready else max(due_in or 0.0, 0.0)),
        owner=_owner(job),
        timeline=timeline,
        lane=_lane_numbers(place) if place is not None else None,
        queue=_queue_numbers(place) if place is not None else None,
    )


def explain_tenant(place: Place, waiting: int) -> TenantWhy:
    """Decide for the tenant's first ready job."""
    idle = Reason.RUNNING if place.lane.running else Reason.NOTHING_WAITS
    reasons = hold_ups(place) if waiting else (idle,)
    return TenantWhy(
        queue_name=place.queue.name,
        tenant_id=TenantId(place.lane.tenant_id),
        reason=reasons[0],
        also=reasons[1:],
        sentence=tenant_sentence(reasons[0], place),
        waiting=waiting,
        expected_start=expected_start(place) if waiting else None,
        lane=_lane_numbers(place),
        queue=_queue_numbers(place),
    )


def timeline_of(job: JobFacts, attempts: tuple[Attempt, ...]) -> Timeline:
    """Adds what goes on now to what was recorded."""
    known = attempts if job.state is not JobState.RUNNING else (*attempts, _running_attempt(job, attempts))
    ran = sum(item.ran_seconds for item in known)
    delayed = sum(item.delayed_seconds for item in known)
    total = max(((job.finished_at or job.seen_at) - job.created_at).total_seconds(), 0.0)
    if job.state in {JobState.SCHEDULED, JobState.RETRY_WAIT}:
        delayed += seconds_between(_last_end(job, attempts), job.seen_at)
    elif job.state is JobState.QUEUED:
        delayed += seconds_between(_last_end(job, attempts), job.queued_at)
    # What is left of the total was spent ready, in line; so the parts add up, whatever was not recorded.
    waited = max(total - ran - delayed, 0.0)
    return Timeline(
        attempts=known, total_seconds=total, delayed_seconds=delayed, waited_seconds=waited, ran_seconds=ran
    )


def _running_attempt(job: JobFacts, attempts: tuple[Attempt, ...]) -> Attempt:
    claimed_at = job.claimed_at or job.seen_at
    return Attempt(
        attempt=job.attempt,
        delayed_seconds=seconds_between(_last_end(job, attempts), job.queued_at),
        waited_seconds=seconds_between(job.queued_at, claimed_at),
        ran_seconds=seconds_between(claimed_at, job.seen_at),
        outcome=None,
        error_code=None,
        error_message=None,
        error_phase=None,
        host=job.host,
        finished_at=None,
    )


def _last_end(job: JobFacts, attempts: tuple[Attempt, ...]) -> datetime:
    return (attempts[-1].finished_at if attempts else None) or job.created_at


def _reasons(job: JobFacts, place: Place | None) -> tuple[Reason, ...]:
    match job.state:
        case JobState.SCHEDULED:
            return (Reason.NOT_YET_DUE,)
        case JobState.RETRY_WAIT:
            return (Reason.WAITS_FOR_RETRY,)
        case JobState.QUEUED:
            return hold_ups(place) if place is not None else (Reason.NEXT_IN_LINE,)
        case JobState.RUNNING:
            return (_reason_running(job),)
        case JobState.SUCCEEDED | JobState.DEAD | JobState.QUARANTINED | JobState.CANCELLED:
            return (Reason.ENDED,)
        case never:
            assert_never(never)


def _reason_running(job: JobFacts) -> Reason:
    if job.lease_expires_at is not None and job.lease_expires_at <= job.seen_at:
        return Reason.LEASE_LAPSED
    return Reason.RUNNING if job.cancel_requested_at is None else Reason.CANCEL_REQUESTED


def _start(place: Place, due_in: float) -> ExpectedStart | None:
    """When it starts, if it gets in line in so many seconds and the line is as long then as it is now."""
    start = expected_start(place)
    if start is None or due_in == 0.0:
        return start
    latest = None if start.latest_seconds is None else due_in + start.latest_seconds
    return ExpectedStart(earliest_seconds=due_in, latest_seconds=latest)


def _owner(job: JobFacts) -> Owner | None:
    if job.state is not JobState.RUNNING or job.lease_expires_at is None:
        return None
    return Owner(host=job.host, pid=job.pid, lease_seconds_left=(job.lease_expires_at - job.seen_at).total_seconds())


def _lane_numbers(place: Place) -> LaneNumbers:
    lane, own = place.lane, place.own
    lead = (lane.virtual_time - place.queue.floor) * lane.weight
    saves_up = not place.is_lane_paused and lane.running < min(lane.cap, lane.ceiling)
    return LaneNumbers(
        weight=lane.weight,
        cap=limit_or_none(lane.cap),
        ceiling=limit_or_none(lane.ceiling),
        paused=place.is_lane_paused,
        running=lane.running,
        running_seconds=own.running_seconds if own is not None else 0.0,
        estimate_seconds=lane.estimate_seconds,
        virtual_time=lane.virtual_time,
        lead_seconds=lead if saves_up else max(lead, 0.0),
        share_used=place.share_used,
        share_due=place.share_due,
    )


def _queue_numbers(place: Place) -> QueueNumbers:
    queue = place.queue
    return QueueNumbers(
        slots=queue.slots,
        headroom=queue.headroom,
        paused=queue.paused,
        running=place.running,
        free=place.free,
        workers=queue.workers,
        worker_slots=queue.worker_slots,
        floor=queue.floor,
        tenants_ahead=len(place.rivals_ahead),
    )
