"""What the answer to "why is this late?" is made from. Every statement is bounded, however long the backlog."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg.rows import dict_row

from tenure.core import limits
from tenure.core.fairness import Lane
from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.place import Load, QueueFacts
from tenure.core.run import RunOutcome
from tenure.core.sentences import seconds_between
from tenure.core.tuning import COUNT_MAX
from tenure.core.why import Attempt, JobFacts
from tenure.store.database import Connection
from tenure.store.statements import statement

BEHIND_ALL = (32_767, 2**63 - 1)
"""Priority and sequence number of a place at the very end of a lane."""


@asynccontextmanager
async def snapshot(connection: Connection) -> AsyncIterator[None]:
    """One read-only transaction in which all statements see the same moment; the connection must be in none yet."""
    async with connection.transaction():
        await connection.execute(statement("why/snapshot"))
        yield


async def job(connection: Connection, tenant_id: TenantId | None, job_id: JobId) -> JobFacts | None:
    """One job, of this tenant, or of any where `tenant_id` is None. Times are in UTC."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("why/job"), {"tenant_id": tenant_id, "job_id": job_id})
        row = await cursor.fetchone()
    if row is None:
        return None
    facts: dict[str, Any] = {name: _utc(value) for name, value in row.items()}
    return JobFacts(**{**facts, "state": JobState(row["state"])})


async def attempts(connection: Connection, found: JobFacts) -> tuple[Attempt, ...]:
    """The newest recorded runs of a job, in order, with the time each was delayed, waited and ran."""
    parameters = {"job_id": found.id, "count": limits.ATTEMPT_COUNT_MAX}
    cursor = await connection.execute(statement("why/attempts"), parameters)
    recorded: list[Attempt] = []
    last_end = found.created_at
    for row in reversed(await cursor.fetchall()):
        queued_at, claimed_at, finished_at = row[1:4]
        recorded.append(
            Attempt(
                attempt=row[0],
                delayed_seconds=seconds_between(last_end, queued_at),
                waited_seconds=seconds_between(queued_at, claimed_at),
                ran_seconds=seconds_between(claimed_at, finished_at),
                outcome=RunOutcome(row[4]),
                error_code=row[5],
                error_message=row[6],
                error_phase=row[7],
                host=row[8],
                finished_at=finished_at.astimezone(UTC),
            )
        )
        last_end = finished_at
    return tuple(recorded)


async def ahead(connection: Connection, queue: str, tenant_id: TenantId, place: tuple[int, int] = BEHIND_ALL) -> int:
    """Ready jobs of a lane before a place (priority, sequence number); at most `limits.WAITING_COUNT_MAX`."""
    parameters = {
        "queue": queue,
        "tenant_id": tenant_id,
        "priority": place[0],
        "seq": place[1],
        "count": limits.WAITING_COUNT_MAX,
    }
    cursor = await connection.execute(statement("why/ahead"), parameters)
    row = await cursor.fetchone()
    return row[0] if row is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A queue and a tenant's lane in it; a lane that is not known yet is as it would begin."""

    queue: QueueFacts
    is_queue_known: bool
    lane: Lane
    is_lane_known: bool
    is_lane_awake: bool
    """It has work in line, as far as the last claim knew."""
    is_lane_paused: bool


async def standing(connection: Connection, queue: str, tenant_id: TenantId) -> Standing:
    """`running` and `waiting` of the lane are left at 0: they are counted elsewhere."""
    parameters = {"queue": queue, "tenant_id": tenant_id, "fresh_seconds": limits.WORKER_FRESH_SECONDS}
    cursor = await connection.execute(statement("why/standing"), parameters)
    (known, slots, headroom, paused, floor, workers, worker_slots, *lane) = (await cursor.fetchall())[0]
    weight, cap, ceiling, is_lane_paused, estimate, virtual_time, backlogged = lane
    is_lane_known = weight is not None
    return Standing(
        queue=QueueFacts(
            name=queue,
            slots=slots,
            headroom=headroom,
            paused=paused,
            floor=floor,
            workers=workers,
            worker_slots=worker_slots,
        ),
        is_queue_known=known,
        lane=Lane(
            tenant_id=tenant_id,
            virtual_time=virtual_time or 0.0,
            weight=weight if is_lane_known else 1.0,
            estimate_seconds=estimate if is_lane_known else 1.0,
            running=0,
            cap=cap if is_lane_known else COUNT_MAX,
            ceiling=ceiling if is_lane_known else COUNT_MAX,
            waiting=0,
        ),
        is_lane_known=is_lane_known,
        is_lane_awake=bool(backlogged),
        is_lane_paused=bool(is_lane_paused),
    )


async def loads(connection: Connection, queue: str) -> tuple[Load, ...]:
    """What runs in a queue now, by tenant."""
    cursor = await connection.execute(statement("why/loads"), {"queue": queue, "count": limits.RUNNING_COUNT_MAX})
    return tuple(
        Load(
            tenant_id=TenantId(row[0]),
            weight=row[1],
            running=row[2],
            running_seconds=row[3],
            left_seconds=row[4],
            longest_left_seconds=row[5],
        )
        for row in await cursor.fetchall()
    )


async def rivals(connection: Connection, queue: str) -> tuple[Lane, ...]:
    """Lanes with work in line, those below their cap first, by virtual time, at most `limits.RIVAL_COUNT_MAX` of each.

    How much work they have is not looked at: `waiting` is 1.
    """
    cursor = await connection.execute(statement("why/rivals"), {"queue": queue, "count": limits.RIVAL_COUNT_MAX})
    return tuple(
        Lane(
            tenant_id=row[0],
            virtual_time=row[1],
            weight=row[2],
            estimate_seconds=row[3],
            running=row[4],
            cap=row[5],
            ceiling=row[6],
            waiting=1,
        )
        for row in await cursor.fetchall()
    )


def _utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
