"""The only transition table of a job. SQL, the database trigger and `docs/lifecycle.md` are checked against it."""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. See `TERMINAL` for the states that absorb."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    QUARANTINED = "quarantined"
    CANCELLED = "cancelled"


class JobEvent(StrEnum):
    """What happens to a job. Each event has one SQL statement and moves to one state."""

    PROMOTE = "promote"
    """`not_before` has passed."""
    CLAIM = "claim"
    """A worker takes the job under a fresh lease; attempt + 1."""
    SUCCEED = "succeed"
    """The run ended well."""
    RETRY = "retry"
    """The run failed, the error is retryable and budget is left."""
    FAIL = "fail"
    """The run failed for good: permanent error or failure budget used."""
    RELEASE = "release"
    """The worker hands the job back; no budget is used."""
    LAPSE = "lapse"
    """The lease ran out; the next claim is the new attempt."""
    LAPSE_AGAIN = "lapse_again"
    """The lease ran out for the second time or more in a row: wait before the next attempt."""
    QUARANTINE = "quarantine"
    """The crash budget is used: a person must look."""
    CANCEL = "cancel"
    """Somebody asked for the end; from `running` it is the worker or the reaper that observes it."""
    EXPIRE = "expire"
    """The start deadline passed before any worker took the job."""
    REPLAY = "replay"
    """An operator's explicit new start."""


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.QUARANTINED, JobState.CANCELLED})
"""States that only a replay can leave, and `succeeded` and `cancelled` never."""

TRANSITIONS: dict[tuple[JobState, JobEvent], JobState] = {
    (JobState.SCHEDULED, JobEvent.PROMOTE): JobState.QUEUED,
    (JobState.RETRY_WAIT, JobEvent.PROMOTE): JobState.QUEUED,
    (JobState.QUEUED, JobEvent.CLAIM): JobState.RUNNING,
    (JobState.RUNNING, JobEvent.SUCCEED): JobState.SUCCEEDED,
    (JobState.RUNNING, JobEvent.RETRY): JobState.RETRY_WAIT,
    (JobState.RUNNING, JobEvent.FAIL): JobState.DEAD,
    (JobState.RUNNING, JobEvent.RELEASE): JobState.QUEUED,
    (JobState.RUNNING, JobEvent.LAPSE): JobState.QUEUED,
    (JobState.RUNNING, JobEvent.LAPSE_AGAIN): JobState.RETRY_WAIT,
    (JobState.RUNNING, JobEvent.QUARANTINE): JobState.QUARANTINED,
    (JobState.QUEUED, JobEvent.CANCEL): JobState.CANCELLED,
    (JobState.SCHEDULED, JobEvent.CANCEL): JobState.CANCELLED,
    (JobState.RETRY_WAIT, JobEvent.CANCEL): JobState.CANCELLED,
    (JobState.RUNNING, JobEvent.CANCEL): JobState.CANCELLED,
    (JobState.QUEUED, JobEvent.EXPIRE): JobState.DEAD,
    (JobState.DEAD, JobEvent.REPLAY): JobState.QUEUED,
    (JobState.QUARANTINED, JobEvent.REPLAY): JobState.QUEUED,
}

ENTRY_STATES = frozenset({JobState.SCHEDULED, JobState.QUEUED})
"""States a new job may be inserted in."""


def next_state(state: JobState, event: JobEvent) -> JobState | None:
    """State after `event`, or None where the move is illegal."""
    return TRANSITIONS.get((state, event))


def legal_moves() -> frozenset[tuple[JobState, JobState]]:
    """Every (from, to) pair that some event allows: what the database trigger must accept, and nothing else."""
    return frozenset((source, target) for (source, _), target in TRANSITIONS.items())
