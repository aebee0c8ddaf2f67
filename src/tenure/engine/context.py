"""What a handler sees of its run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenure.core.ids import JobId, TenantId
from tenure.core.job import Fence
from tenure.store.progress import Progress


class RunCancelledError(Exception):
    """Raised at a safe point inside a handler after a cancel was asked for; let it pass through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One run, from inside. `fence` and `idempotency_key` go along with every side effect outside the database."""

    fence: Fence
    tenant_id: TenantId
    args: Any
    """Decoded into the kind's `args_type`."""
    resume_from: bytes | None
    """JSON text of the newest checkpoint of an earlier attempt."""
    report: Callable[[Progress], None]
    checkpoint: Callable[[bytes], None]
    """Keep JSON text to resume from; written with the next heartbeat, fenced."""
    is_cancelled: Callable[[], bool]

    @property
    def job_id(self) -> JobId:
        return self.fence.job_id

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job."""
        return str(self.fence.job_id)

    def check_cancelled(self) -> None:
        """Raise where a cancel was asked for. Call it often: a handler that does not is killed after a grace."""
        if self.is_cancelled():
            raise RunCancelledError
