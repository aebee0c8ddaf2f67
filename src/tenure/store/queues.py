"""Queues: the row is the scheduler's mutex and holds the queue's settings."""

from dataclasses import dataclass

from psycopg.rows import TupleRow

from tenure.core import limits
from tenure.core.tuning import UNLIMITED, QueueChanges, QueueSettings, QueueView
from tenure.store.database import Connection
from tenure.store.statements import statement


async def ensure(connection: Connection, queue: str) -> None:
    """Make a queue known; its settings stay as they are."""
    await connection.execute(statement("queues/ensure"), {"queue": queue})


async def lock(connection: Connection, queue: str) -> None:
    """Take the queue's lock until the transaction ends."""
    await connection.execute(statement("queues/lock"), {"queue": queue})


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedQueue:
    """A queue's settings before and after a change."""

    before: QueueSettings
    after: QueueSettings


async def tune(connection: Connection, queue: str, changes: QueueChanges) -> TunedQueue | None:
    """Change a queue's settings; the caller holds the queue's lock. None: there is no such queue."""
    parameters = {
        "queue": queue,
        "sets_slots": changes.slots is not None,
        "slots": None if changes.slots is UNLIMITED else changes.slots,
        "headroom": changes.headroom,
        "paused": changes.paused,
    }
    cursor = await connection.execute(statement("queues/tune"), parameters)
    row = await cursor.fetchone()
    return None if row is None else TunedQueue(before=_settings(queue, row[:3]), after=_settings(queue, row[3:]))


async def list_queues(connection: Connection, queue: str | None = None) -> list[QueueView]:
    """All queues by name, or one."""
    parameters = {
        "queue": queue,
        "running_count": limits.RUNNING_COUNT_MAX,
        "waiting_count": limits.WAITING_COUNT_MAX,
        "fresh_seconds": limits.WORKER_FRESH_SECONDS,
    }
    cursor = await connection.execute(statement("queues/list"), parameters)
    return [
        QueueView(
            settings=_settings(row[0], row[1:4]),
            running=row[4],
            waiting=row[5],
            workers=row[6],
            worker_slots=row[7],
            floor=row[8],
        )
        for row in await cursor.fetchall()
    ]


def _settings(queue: str, row: TupleRow) -> QueueSettings:
    slots, headroom, paused = row
    return QueueSettings(queue=queue, slots=slots, headroom=headroom, paused=paused)
