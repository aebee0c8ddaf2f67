"""Facts leave the engine here, as typed values; who logs them or counts them is decided in wiring."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tenure.core.ids import JobId, TenantId
from tenure.core.job import Claim


class FactName(StrEnum):
    """What happened."""

    WORKER_STARTED = "worker.started"
    WORKER_STOPPING = "worker.stopping"
    WORKER_STOPPED = "worker.stopped"
    JOB_CLAIMED = "job.claimed"
    RUN_ENDED = "run.ended"
    RUN_STALE = "run.stale"
    """A report came too late: its fence was no longer current, nothing was written."""
    LEASE_LOST = "lease.lost"
    LEASE_LAPSED = "lease.lapsed"
    JOB_EXPIRED = "job.expired"
    LANE_LOST_SIGHT = "lane.lost_sight"
    """The sweep found ready jobs their lane did not know of; should never happen."""
    LANE_DRIFTED = "lane.drifted"
    """A running counter differed from the leases; should never happen."""
    SETTLE_FAILED = "settle.failed"
    """A run's end could not be written, and it was not the database's absence: most often an `on_end` that raises."""
    DATABASE_AWAY = "database.away"
    HOUSEKEEPING_FAILED = "housekeeping.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened. `detail` is a short sentence without secrets or data."""

    name: FactName
    job_id: JobId | None = None
    tenant_id: TenantId | None = None
    kind: str | None = None
    attempt: int | None = None
    detail: str | None = None

    @classmethod
    def of(cls, name: FactName, claim: Claim, detail: str | None = None) -> "Fact":
        """A fact about a claimed job."""
        return cls(
            name=name,
            job_id=claim.fence.job_id,
            tenant_id=claim.tenant_id,
            kind=claim.kind,
            attempt=claim.fence.attempt,
            detail=detail,
        )


Observer = Callable[[Fact], None]
