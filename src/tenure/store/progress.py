"""How far running jobs are, and what their next attempt would resume from. Both are fenced."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tenure.core.ids import JobId
from tenure.core.job import Fence
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Units are the handler's own: rows for exports. `total` None: not known yet."""

    done: int
    total: int | None = None
    bytes_done: int = 0
    phase: str | None = None


async def record(connection: Connection, reports: Mapping[Fence, Progress]) -> None:
    """Keep the newest progress of running jobs; stale fences change nothing."""
    rows = [
        {
            "job_id": fence.job_id,
            "attempt": fence.attempt,
            "lease_token": fence.lease_token,
            "done": progress.done,
            "total": progress.total,
            "bytes_done": progress.bytes_done,
            "phase": progress.phase,
        }
        for fence, progress in reports.items()
    ]
    await connection.execute(statement("progress/record"), {"reports": msgspec.json.encode(rows).decode(), "now": None})


async def checkpoint(connection: Connection, values: Mapping[Fence, bytes]) -> set[JobId]:
    """Keep checkpoints (JSON text) of running jobs; the ids returned are those whose fence was current."""
    rows = [
        {
            "job_id": fence.job_id,
            "attempt": fence.attempt,
            "lease_token": fence.lease_token,
            "value": msgspec.Raw(value),
        }
        for fence, value in values.items()
    ]
    cursor = await connection.execute(
        statement("progress/checkpoint"), {"reports": msgspec.json.encode(rows).decode(), "now": None}
    )
    return {JobId(row[0]) for row in await cursor.fetchall()}
