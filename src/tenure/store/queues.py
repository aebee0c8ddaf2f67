"""Queues: the row is the scheduler's mutex and holds the queue's settings."""

from tenure.store.database import Connection
from tenure.store.statements import statement


async def ensure(connection: Connection, queue: str) -> None:
    """Make a queue known; its settings stay as they are."""
    await connection.execute(statement("queues/ensure"), {"queue": queue})


async def lock(connection: Connection, queue: str) -> None:
    """Take the queue's lock until the transaction ends."""
    await connection.execute(statement("queues/lock"), {"queue": queue})
