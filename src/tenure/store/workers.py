"""Workers, for people: nothing here ever judges a lease."""

from dataclasses import dataclass

from tenure.core.ids import JobId, TenantId, WorkerId
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """A worker process. The id is random per start, never the host's name."""

    id: WorkerId
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOwner:
    """The worker process that runs a job now, and how long its lease still lasts by the database's clock."""

    pid: int
    attempt: int
    lease_seconds_left: float


async def register(connection: Connection, worker: WorkerIdentity) -> None:
    """Say that the worker is there."""
    await connection.execute(
        statement("workers/register"),
        {
            "worker_id": worker.id,
            "host": worker.host,
            "pid": worker.pid,
            "queues": list(worker.queues),
            "slots": worker.slots,
            "version": worker.version,
        },
    )


async def beat(connection: Connection, worker_id: WorkerId, *, stopped: bool = False) -> None:
    """Say that the worker is still there, or has stopped."""
    await connection.execute(statement("workers/beat"), {"worker_id": worker_id, "stopped": stopped})


async def owner(connection: Connection, tenant_id: TenantId, job_id: JobId) -> JobOwner | None:
    """Who runs a tenant's job; None while nobody does."""
    cursor = await connection.execute(statement("workers/owner"), {"tenant_id": tenant_id, "job_id": job_id})
    row = await cursor.fetchone()
    return None if row is None else JobOwner(pid=row[0], attempt=row[1], lease_seconds_left=row[2])
