"""Cancel a job: at once while it waits; a running one is asked and stops at its next safe point."""

from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobEnd
from tenure.core.lifecycle import JobState
from tenure.engine.handlers import Kinds
from tenure.store import jobs
from tenure.store.database import Connection


async def cancel_job(connection: Connection, kinds: Kinds, tenant_id: TenantId, job_id: JobId) -> JobEnd | None:
    """Cancel inside the caller's transaction. None: unknown, foreign or already ended. Running: asked, not yet done."""
    end = await jobs.cancel(connection, tenant_id, job_id)
    if end is not None and end.state is JobState.CANCELLED:
        await kinds.tell(connection, end)
    return end
