"""Why is this late? Looks, in one snapshot and within bounds, at what `core.explain` needs to answer."""

from dataclasses import replace

from tenure.core import limits
from tenure.core.errors import NotFoundError
from tenure.core.explain import explain_job, explain_tenant
from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.place import Place, waking_virtual_time
from tenure.core.tuning import is_name
from tenure.core.why import JobFacts, JobWhy, TenantWhy
from tenure.store import why
from tenure.store.database import Connection

WAITING = frozenset({JobState.QUEUED, JobState.SCHEDULED, JobState.RETRY_WAIT})


async def why_job(connection: Connection, tenant_id: TenantId | None, job_id: JobId) -> JobWhy:
    """Why a tenant's job is where it is; `tenant_id` None: any tenant's, for operators.

    The connection must not be in a transaction. Raises `NotFoundError`, alike for unknown jobs and another tenant's.
    """
    async with why.snapshot(connection):
        job = await why.job(connection, tenant_id, job_id)
        if job is None:
            raise NotFoundError("job")
        attempts = await why.attempts(connection, job)
        place = await _place_of(connection, job) if job.state in WAITING else None
    return explain_job(job, place, attempts)


async def why_tenant(connection: Connection, queue: str, tenant_id: TenantId) -> TenantWhy:
    """Why a tenant's next job in a queue is where it is. The connection must not be in a transaction.

    Raises `NotFoundError`: no such queue, or the tenant never had work there.
    """
    if not is_name(queue, limits.QUEUE_NAME_CHARS_MAX):
        raise NotFoundError("queue")
    if not is_name(tenant_id, limits.TENANT_ID_CHARS_MAX):
        raise NotFoundError("tenant")
    async with why.snapshot(connection):
        waiting = await why.ahead(connection, queue, tenant_id)
        standing = await why.standing(connection, queue, tenant_id)
        if not waiting and not standing.is_lane_known:
            raise NotFoundError("tenant" if standing.is_queue_known else "queue")
        place = await _place(connection, standing, 0)
    return explain_tenant(place, waiting)


async def _place_of(connection: Connection, job: JobFacts) -> Place:
    """Where the job stands; one that is not ready yet, where it would stand now: behind all of its priority."""
    seq = job.seq if job.state is JobState.QUEUED else why.BEHIND_ALL[1]
    ahead = await why.ahead(connection, job.queue, job.tenant_id, (job.priority, seq))
    return await _place(connection, await why.standing(connection, job.queue, job.tenant_id), ahead)


async def _place(connection: Connection, standing: why.Standing, ahead: int) -> Place:
    queue, tenant_id = standing.queue.name, standing.lane.tenant_id
    loads = await why.loads(connection, queue)
    lanes = await why.rivals(connection, queue)
    rivals = tuple(lane for lane in lanes if lane.tenant_id != tenant_id)
    lane = replace(
        standing.lane,
        running=sum(load.running for load in loads if load.tenant_id == tenant_id),
        waiting=ahead + 1,
    )
    if not standing.is_lane_awake:
        lane = replace(lane, virtual_time=waking_virtual_time(lane, rivals, standing.queue.floor))
    return Place(
        queue=standing.queue,
        lane=lane,
        is_lane_paused=standing.is_lane_paused,
        ahead=ahead,
        loads=loads,
        rivals=rivals,
        are_rivals_complete=len(lanes) < limits.RIVAL_COUNT_MAX,
    )
