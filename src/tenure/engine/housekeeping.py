"""What any process may do at any time for all jobs: promote, reap, expire, check the lanes. Bounded batches."""

from collections.abc import Sequence

from tenure.core.job import JobEnd
from tenure.core.lifecycle import JobState
from tenure.engine.events import Fact, FactName, Observer
from tenure.engine.handlers import Kinds
from tenure.store import doorbells, jobs, lanes, queues, runs
from tenure.store.database import Database

PARTITION_MONTHS_AHEAD = 2


async def promote_due(database: Database) -> int:
    """Make due jobs ready and wake their workers. Number of jobs promoted."""
    async with database.transaction() as connection:
        promoted = await jobs.promote(connection)
        for queue in sorted(set(promoted.values())):
            await doorbells.ring(connection, queue)
    return len(promoted)


async def reap_lapsed(database: Database, kinds: Kinds, observe: Observer) -> int:
    """Take back lapsed leases of the kinds known here. Number of jobs reaped."""
    count = 0
    for batch in kinds.batches():
        async with database.transaction() as connection:
            reaped = await jobs.reap(connection, batch)
            for end, _ in reaped:
                await kinds.tell(connection, end)
            for queue in sorted({queue for end, queue in reaped if end.state is JobState.QUEUED}):
                await doorbells.ring(connection, queue)
        for end, _ in reaped:
            detail = f"the lease ran out; the job is {end.state}"
            observe(_fact(FactName.LEASE_LAPSED, end, detail))
        count += len(reaped)
    return count


async def expire_late(database: Database, kinds: Kinds, observe: Observer) -> int:
    """End jobs that no worker took by their start deadline. Number of jobs ended."""
    count = 0
    for batch in kinds.batches():
        async with database.transaction() as connection:
            expired = await jobs.expire(connection, batch)
            for end in expired:
                await kinds.tell(connection, end)
        for end in expired:
            observe(_fact(FactName.JOB_EXPIRED, end, "no worker took the job before its start deadline"))
        count += len(expired)
    return count


async def check_lanes(database: Database, queue_names: Sequence[str], observe: Observer) -> None:
    """Compare the lanes with the jobs and mend what differs. It should find nothing; what it finds is an alarm."""
    for queue in queue_names:
        async with database.transaction() as connection:
            await queues.lock(connection, queue)
            await lanes.fold(connection, queue)
            lost_sight = await lanes.sweep(connection, queue)
            drifted = await lanes.recount(connection, queue)
            if lost_sight:
                await doorbells.ring(connection, queue)
        for tenant_id in lost_sight:
            observe(Fact(name=FactName.LANE_LOST_SIGHT, tenant_id=tenant_id, detail=f"queue {queue}"))
        for tenant_id in drifted:
            observe(Fact(name=FactName.LANE_DRIFTED, tenant_id=tenant_id, detail=f"queue {queue}"))


async def make_partitions(database: Database) -> None:
    """Make the partitions of run records ahead of time."""
    async with database.transaction() as connection:
        await runs.create_partitions(connection, months_ahead=PARTITION_MONTHS_AHEAD)


def _fact(name: FactName, end: JobEnd, detail: str) -> Fact:
    return Fact(
        name=name, job_id=end.job_id, tenant_id=end.tenant_id, kind=end.kind, attempt=end.attempt, detail=detail
    )
