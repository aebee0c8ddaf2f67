"""Lanes: the waiting line of one tenant in one queue, with its fairness account. Claims fold them; see `jobs.claim`."""

from dataclasses import dataclass

from psycopg.rows import TupleRow

from tenure.core import limits
from tenure.core.ids import TenantId
from tenure.core.tuning import COUNT_MAX, UNLIMITED, LaneChanges, LaneSettings, LaneView, Limit, limit_or_none
from tenure.store.database import Connection
from tenure.store.statements import statement


async def fold(connection: Connection, queue: str) -> None:
    """Take what producers and settlers noted into the lanes; the caller holds the queue's lock."""
    await connection.execute(statement("lanes/fold"), {"queue": queue})


async def sweep(connection: Connection, queue: str) -> list[TenantId]:
    """Mark lanes whose ready jobs their lane had lost sight of; the caller holds the queue's lock."""
    cursor = await connection.execute(statement("lanes/sweep"), {"queue": queue})
    return [TenantId(row[0]) for row in await cursor.fetchall()]


async def recount(connection: Connection, queue: str) -> list[TenantId]:
    """Set the running counters from the leases; the caller holds the queue's lock. Returns lanes that had drifted."""
    cursor = await connection.execute(statement("lanes/recount"), {"queue": queue})
    return [TenantId(row[0]) for row in await cursor.fetchall()]


async def open_lane(connection: Connection, queue: str, tenant_id: TenantId) -> bool:
    """Make a lane for a tenant that never had work here, at the floor; the caller holds the queue's lock."""
    cursor = await connection.execute(statement("lanes/open"), {"queue": queue, "tenant_id": tenant_id})
    return await cursor.fetchone() is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedLane:
    """A lane's settings before and after a change."""

    before: LaneSettings
    after: LaneSettings


async def tune(connection: Connection, queue: str, tenant_id: TenantId, changes: LaneChanges) -> TunedLane | None:
    """Change a lane's settings; the caller holds the queue's lock and has folded. None: there is no such lane."""
    parameters = {
        "queue": queue,
        "tenant_id": tenant_id,
        "weight": changes.weight,
        "cap": _stored(changes.cap),
        "ceiling": _stored(changes.ceiling),
        "paused": changes.paused,
    }
    cursor = await connection.execute(statement("lanes/tune"), parameters)
    row = await cursor.fetchone()
    if row is None:
        return None
    return TunedLane(before=_settings(queue, tenant_id, row[:4]), after=_settings(queue, tenant_id, row[4:]))


async def list_lanes(connection: Connection, queue: str, count: int, after: TenantId | None) -> list[LaneView]:
    """Lanes of a queue by tenant id, from the one behind `after` on."""
    parameters = {
        "queue": queue,
        "after": after or "",
        "count": count,
        "running_count": limits.RUNNING_COUNT_MAX,
        "waiting_count": limits.WAITING_COUNT_MAX,
    }
    cursor = await connection.execute(statement("lanes/list"), parameters)
    return [
        LaneView(
            settings=_settings(row[0], TenantId(row[1]), row[2:6]),
            running=row[6],
            waiting=row[7],
            virtual_time=row[8],
            lead_seconds=row[9] * row[2],
            estimate_seconds=row[10],
        )
        for row in await cursor.fetchall()
    ]


def _settings(queue: str, tenant_id: TenantId, row: TupleRow) -> LaneSettings:
    weight, cap, ceiling, paused = row
    return LaneSettings(
        queue=queue,
        tenant_id=tenant_id,
        weight=weight,
        cap=limit_or_none(cap),
        ceiling=limit_or_none(ceiling),
        paused=paused,
    )


def _stored(limit: Limit | None) -> int | None:
    return COUNT_MAX if limit is UNLIMITED else limit
