"""Jobs: every move is one guarded statement; no rows back means that somebody else moved the job first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import TupleRow

from tenure.core import limits
from tenure.core.ids import JobId, LeaseToken, TenantId, WorkerId
from tenure.core.job import Claim, Fence, JobEnd, JobView, NewJob
from tenure.core.lifecycle import JobState
from tenure.core.run import RunUsage
from tenure.core.settlement import Settlement
from tenure.store.database import Connection
from tenure.store.statements import statement

NO_USAGE = RunUsage()


async def enqueue(
    connection: Connection, jobs: Sequence[NewJob], *, now: datetime | None = None
) -> dict[JobId, JobState]:
    """Insert jobs; the ids returned are those that were new. A known id or a held unique key inserts nothing."""
    rows = [
        {
            "id": job.id,
            "tenant_id": job.tenant_id,
            "queue": job.queue,
            "kind": job.kind,
            "args": msgspec.Raw(job.args),
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "max_crashes": job.max_crashes,
            "lease_seconds": job.lease_seconds,
            "not_before": job.not_before,
            "start_deadline": job.start_deadline,
            "unique_key": job.unique_key,
        }
        for job in jobs
    ]
    cursor = await connection.execute(statement("jobs/enqueue"), {"jobs": _document(rows), "now": now})
    return {JobId(row[0]): JobState(row[1]) for row in await cursor.fetchall()}


async def holder(connection: Connection, tenant_id: TenantId, unique_key: str) -> JobId | None:
    """The unfinished job that holds a unique key."""
    cursor = await connection.execute(statement("jobs/holder"), {"tenant_id": tenant_id, "unique_key": unique_key})
    row = await cursor.fetchone()
    return None if row is None else JobId(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """How many jobs of which queue and kinds a worker wants."""

    queue: str
    worker_id: WorkerId
    count: int
    kinds: tuple[str, ...]


async def claim(connection: Connection, request: ClaimRequest, *, now: datetime | None = None) -> list[Claim]:
    """Claim ready jobs fairly.

    A lane that turns out to have fewer jobs than its share gives its slots to the others in another round. Each such
    round takes at least one lane out of the running, so it ends.
    """
    claims: list[Claim] = []
    count = min(request.count, limits.CLAIM_COUNT_MAX)
    fell_short = True
    while fell_short and len(claims) < count:
        try:
            found, fell_short = await _claim_round(connection, request, count - len(claims), now)
        except psycopg.OperationalError:
            if claims:
                return claims  # committed in an earlier round: they must be run
            raise
        claims += found
    return claims


async def _claim_round(
    connection: Connection, request: ClaimRequest, count: int, now: datetime | None
) -> tuple[list[Claim], bool]:
    """All statements travel in one round trip, so a stalled client cannot sit on the queue's lock."""
    queue = {"queue": request.queue}
    parameters = {
        **queue,
        "worker_id": request.worker_id,
        "count": count,
        "kinds": list(request.kinds),
        "now": now,
    }
    async with connection.pipeline(), connection.transaction():
        await connection.execute(statement("queues/lock"), queue)
        await connection.execute(statement("lanes/fold"), queue)
        claimed = await connection.execute(statement("jobs/claim"), parameters)
        await connection.execute(statement("queues/settle_floor"), queue)
    rows = await claimed.fetchall()
    return [_claim(row[1:]) for row in rows if row[1] is not None], any(row[0] for row in rows)


class Beat(StrEnum):
    """What became of one lease in a heartbeat. A job that is missing from the answer has lost its lease."""

    EXTENDED = "extended"
    CANCEL_REQUESTED = "cancel_requested"
    """Extended too: the handler gets time to reach a safe point."""
    HELD_UP = "held_up"
    """Somebody else holds the row: the lease is still this worker's, but was not extended. Try again soon."""


async def heartbeat(
    connection: Connection, fences: Sequence[Fence], *, now: datetime | None = None
) -> dict[JobId, Beat]:
    """Extend leases; waits for nobody."""
    parameters = {
        "job_ids": [fence.job_id for fence in fences],
        "attempts": [fence.attempt for fence in fences],
        "lease_tokens": [fence.lease_token for fence in fences],
        "now": now,
    }
    cursor = await connection.execute(statement("jobs/heartbeat"), parameters)
    beats = {None: Beat.HELD_UP, True: Beat.CANCEL_REQUESTED, False: Beat.EXTENDED}
    return {JobId(row[0]): beats[row[1]] for row in await cursor.fetchall()}


async def settle(
    connection: Connection, settlements: Iterable[Settlement], *, host: str, now: datetime | None = None
) -> list[JobEnd]:
    """End runs. What is missing from the answer was stale: its fence is no longer current and nothing was written."""
    by_job = {settlement.fence.job_id: settlement for settlement in settlements}
    rows = [_settlement_row(settlement) for settlement in by_job.values()]
    cursor = await connection.execute(
        statement("jobs/settle"), {"settlements": _document(rows), "host": host, "now": now}
    )
    return [_settled_end(row, by_job[JobId(row[0])]) for row in await cursor.fetchall()]


async def reap(
    connection: Connection, kinds: Sequence[str], *, now: datetime | None = None
) -> list[tuple[JobEnd, str]]:
    """Take back lapsed leases, a bounded batch at a time. Each end comes with its queue's name."""
    parameters = {
        "kinds": list(kinds),
        "count": limits.REAP_COUNT_MAX,
        "backoff_seconds": limits.LAPSE_BACKOFF_SECONDS,
        "backoff_seconds_max": limits.LAPSE_BACKOFF_SECONDS_MAX,
        "now": now,
    }
    cursor = await connection.execute(statement("jobs/reap"), parameters)
    return [
        (_end(row, error_code="lease_expired", error_message="the worker stopped renewing its lease"), row[5])
        for row in await cursor.fetchall()
    ]


async def promote(connection: Connection, *, now: datetime | None = None) -> dict[JobId, str]:
    """Make due jobs ready, a bounded batch at a time. Job id -> queue."""
    cursor = await connection.execute(statement("jobs/promote"), {"count": limits.PROMOTE_COUNT_MAX, "now": now})
    return {JobId(row[0]): str(row[1]) for row in await cursor.fetchall()}


async def expire(connection: Connection, kinds: Sequence[str], *, now: datetime | None = None) -> list[JobEnd]:
    """End jobs that no worker took by their start deadline."""
    cursor = await connection.execute(
        statement("jobs/expire"), {"kinds": list(kinds), "count": limits.REAP_COUNT_MAX, "now": now}
    )
    message = "no worker took the job before its start deadline"
    return [_end(row, error_code="start_deadline_passed", error_message=message) for row in await cursor.fetchall()]


async def cancel(
    connection: Connection, tenant_id: TenantId, job_id: JobId, *, now: datetime | None = None
) -> JobEnd | None:
    """Cancel a waiting job, or ask a running one to stop: then the state is still running. None: nothing to cancel."""
    cursor = await connection.execute(statement("jobs/cancel"), {"tenant_id": tenant_id, "job_id": job_id, "now": now})
    row = await cursor.fetchone()
    return None if row is None else _end(row)


async def find(connection: Connection, tenant_id: TenantId, job_id: JobId) -> JobView | None:
    """One job of a tenant."""
    cursor = await connection.execute(statement("jobs/find"), {"tenant_id": tenant_id, "job_id": job_id})
    row = await cursor.fetchone()
    return None if row is None else _view(row)


def _document(rows: Sequence[dict[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode()


def _claim(row: TupleRow) -> Claim:
    return Claim(
        fence=Fence(job_id=JobId(row[0]), attempt=row[1], lease_token=LeaseToken(row[2])),
        tenant_id=TenantId(row[3]),
        queue=row[4],
        kind=row[5],
        args=row[6],
        lease_seconds=row[7],
        failures=row[8],
        max_attempts=row[9],
        crashes=row[10],
        max_crashes=row[11],
        checkpoint=row[12],
    )


def _settlement_row(settlement: Settlement) -> dict[str, Any]:
    """What the statement reads; fields that are absent come out as NULL, and most runs end without most of them."""
    row: dict[str, Any] = {
        "job_id": settlement.fence.job_id,
        "attempt": settlement.fence.attempt,
        "lease_token": settlement.fence.lease_token,
        "state": settlement.state,
        "outcome": settlement.outcome,
        "wait_seconds": settlement.wait_seconds,
        "failed": int(settlement.counts_as_failure),
        "crashed": int(settlement.counts_as_crash),
        "released": int(settlement.counts_as_release),
    }
    if settlement.result is not None:
        row["result"] = msgspec.Raw(settlement.result)
    if settlement.error is not None:
        row |= {
            "error_class": settlement.error.error_class,
            "error_code": settlement.error.code,
            "error_message": settlement.error.message,
            "error_phase": settlement.error.phase,
            "traceback": settlement.error.traceback,
        }
    if settlement.usage != NO_USAGE:
        row |= {
            "pid": settlement.usage.pid,
            "exit_signal": settlement.usage.exit_signal,
            "peak_memory_bytes": settlement.usage.peak_memory_bytes,
            "log_tail": settlement.usage.log_tail,
        }
    return row


def _settled_end(row: TupleRow, settlement: Settlement) -> JobEnd:
    error = settlement.error
    return _end(
        row,
        error_code=error and error.code,
        error_message=error and error.message,
        error_phase=error and error.phase,
        result=settlement.result,
    )


def _end(row: TupleRow, **facts: Any) -> JobEnd:
    return JobEnd(
        job_id=JobId(row[0]),
        tenant_id=TenantId(row[1]),
        kind=row[2],
        attempt=row[3],
        state=JobState(row[4]),
        **facts,
    )


def _view(row: TupleRow) -> JobView:
    return JobView(
        id=JobId(UUID(str(row[0]))),
        tenant_id=TenantId(row[1]),
        queue=row[2],
        kind=row[3],
        state=JobState(row[4]),
        priority=row[5],
        attempt=row[6],
        failures=row[7],
        max_attempts=row[8],
        crashes=row[9],
        max_crashes=row[10],
        releases=row[11],
        not_before=row[12],
        lease_expires_at=row[13],
        cancel_requested_at=row[14],
        created_at=row[15],
        finished_at=row[16],
    )
