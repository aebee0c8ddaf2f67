"""Lanes: the waiting line of one tenant in one queue, with its fairness account. Claims fold them; see `jobs.claim`."""

from tenure.core.ids import TenantId
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
