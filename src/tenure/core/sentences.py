"""Reasons as one plain sentence each. A sentence never tells one tenant about another: it may go to customers."""

from datetime import datetime

from tenure.core.durations import spoken_duration
from tenure.core.lifecycle import TERMINAL
from tenure.core.place import Place, Reason, would_start
from tenure.core.why import JobFacts, Timeline

SHOWN = 0.05
"""Fewer seconds would read as 0.0."""
WAITING = {
    Reason.QUEUE_PAUSED: "An operator paused the queue; nothing of it starts until it is resumed.",
    Reason.TENANT_PAUSED: "An operator paused this tenant in the queue; nothing of it starts until it is resumed.",
    Reason.NO_WORKER: "No worker takes jobs of this queue at present; it starts once one does.",
    Reason.NO_SLOTS: "The queue has no slots; it starts once an operator gives it some.",
    Reason.TENANT_AT_CEILING: "The tenant runs {running}, which is its ceiling; the next starts when one of them ends.",
    Reason.TENANT_AT_CAP: "The tenant runs {running}, its cap is {cap}, and there is no idle slot to borrow.",
    Reason.OTHERS_ARE_OWED_MORE: "All slots are taken, and tenants that have had less of their share come first.",
    Reason.BEHIND_OWN_JOBS: "It is the tenant's turn, but {ahead} of the tenant's own come first.",
    Reason.NEXT_IN_LINE: "It is next; it starts with the first slot that becomes free.",
}
FREE_SLOT = "There is a free slot for it; it starts with the next claim."


def job_sentence(reason: Reason, job: JobFacts, place: Place | None, timeline: Timeline) -> str:
    """`place` is needed for a job that is ready."""
    if reason in WAITING and place is not None:
        return _waiting_sentence(reason, place)
    match reason:
        case Reason.NOT_YET_DUE:
            return f"It is scheduled, and {_when_due(job)}."
        case Reason.WAITS_FOR_RETRY:
            return f"{_last_failure(timeline)}; it is tried again, and {_when_due(job)}."
        case Reason.LEASE_LAPSED:
            return "Its worker stopped renewing the lease; the job is taken back within seconds and runs again."
        case Reason.CANCEL_REQUESTED | Reason.RUNNING:
            return _running_sentence(job, timeline)
        case _:
            return _ended_sentence(job, timeline)


def tenant_sentence(reason: Reason, place: Place) -> str:
    match reason:
        case Reason.NOTHING_WAITS:
            return "Nothing of this tenant waits or runs in this queue."
        case Reason.RUNNING:
            return f"Everything of this tenant that was ready runs: {_jobs(place.lane.running)}."
        case _:
            return _waiting_sentence(reason, place)


def _waiting_sentence(reason: Reason, place: Place) -> str:
    if reason is Reason.NEXT_IN_LINE and would_start(place):
        return FREE_SLOT
    return WAITING[reason].format(running=_jobs(place.lane.running), cap=place.lane.cap, ahead=_jobs(place.ahead))


def _running_sentence(job: JobFacts, timeline: Timeline) -> str:
    if job.cancel_requested_at is not None:
        asked = seconds_between(job.cancel_requested_at, job.seen_at)
        return f"Its cancellation was asked for {spoken_duration(asked)} ago; it stops at its next safe point."
    return f"It runs, attempt {job.attempt}, for {spoken_duration(timeline.attempts[-1].ran_seconds)} now."


def _when_due(job: JobFacts) -> str:
    due_in = (job.not_before - job.seen_at).total_seconds() if job.not_before is not None else 0.0
    return "is due now" if due_in <= 0 else f"becomes ready in {spoken_duration(due_in)}"


def _last_failure(timeline: Timeline) -> str:
    if not timeline.attempts:
        return "An attempt ended badly"
    last = timeline.attempts[-1]
    return f"Attempt {last.attempt} ended with {last.error_code or last.outcome}"


def _ended_sentence(job: JobFacts, timeline: Timeline) -> str:
    """For example: Succeeded after 4 h 2 min: 3 h 30 min in line, 32 min running in 2 attempts."""
    count = len(timeline.attempts)
    parts = [
        (timeline.waited_seconds, "in line"),
        (timeline.delayed_seconds, "until it was ready"),
        (timeline.ran_seconds, f"running in {count} attempt{'' if count == 1 else 's'}" if count else "running"),
    ]
    told = [f"{spoken_duration(seconds)} {what}" for seconds, what in sorted(parts, reverse=True) if seconds > SHOWN]
    state = job.state if job.state in TERMINAL else "ended"
    detail = f": {', '.join(told)}" if told else ""
    return f"{state.capitalize()} after {spoken_duration(timeline.total_seconds)}{detail}."


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def seconds_between(start: datetime, end: datetime) -> float:
    return max((end - start).total_seconds(), 0.0)
