"""How worker time was shared in a window: what a fairness report says."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tenure.core.fairness import jain_index
from tenure.core.ids import TenantId
from tenure.core.run import RunOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What one tenant used of one queue's worker time in the window, and how long its jobs waited."""

    queue: str
    tenant_id: TenantId
    weight: float
    """As it is now; it may have been another one before."""
    worker_seconds: float
    """Of ended and running runs, only the part within the window."""
    runs: int
    """That ended in the window."""
    running: int
    waiting: bool
    """Whether jobs of it wait at the end of the window."""
    outcomes: Mapping[RunOutcome, int]
    wait_seconds_p50: float | None
    """From ready to claimed, of runs claimed in the window; None when none was."""
    wait_seconds_p95: float | None
    wait_seconds_max: float | None
    first_waits_seconds: float | None
    """How long the first in line has waited so far; None when none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantShare:
    """One tenant's part of one queue, of 1, beside the part its weight comes to."""

    used: Used
    share: float
    share_due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueShares:
    """One queue. `jain_index` is over worker-seconds per weight of the tenants listed."""

    queue: str
    worker_seconds: float
    jain_index: float
    tenants: tuple[TenantShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessReport:
    """Queues that had work in the window, by name; tenants by worker-seconds, most first.

    A tenant is listed when something of it ran in the window or waits at its end. Read the index with care: a tenant
    that had work only for a part of the window was owed less than `share_due`, and lowers it without being wronged.
    """

    since: datetime
    until: datetime
    queues: tuple[QueueShares, ...]
    is_complete: bool
    """False: there were more rows than `limits.SHARE_COUNT_MAX`, and the smallest are left out."""


def queue_shares(queue: str, used: tuple[Used, ...]) -> QueueShares:
    """Parts and index of one queue's rows."""
    total = sum(item.worker_seconds for item in used)
    weights = sum(item.weight for item in used)
    tenants = tuple(
        TenantShare(
            used=item,
            share=item.worker_seconds / total if total else 0.0,
            share_due=item.weight / weights,
        )
        for item in used
    )
    index = jain_index(item.worker_seconds / item.weight for item in used)
    return QueueShares(queue=queue, worker_seconds=total, jain_index=index, tenants=tenants)
