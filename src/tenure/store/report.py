"""Worker time by queue and tenant, from run records and from what runs now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg.rows import TupleRow

from tenure.core import limits
from tenure.core.ids import TenantId
from tenure.core.run import RunOutcome
from tenure.core.shares import Used
from tenure.store.database import Connection
from tenure.store.statements import statement

OUTCOMES = (
    RunOutcome.SUCCEEDED,
    RunOutcome.FAILED,
    RunOutcome.LEASE_EXPIRED,
    RunOutcome.RELEASED,
    RunOutcome.CANCELLED,
)
"""In the order of the statement's columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A span of time by the database's clock, in UTC."""

    since: datetime
    until: datetime


async def window(connection: Connection, seconds: float) -> Window:
    """The last so many seconds."""
    cursor = await connection.execute(statement("report/window"), {"seconds": seconds})
    since, until = (await cursor.fetchall())[0]
    return Window(since=since.astimezone(UTC), until=until.astimezone(UTC))


async def used(connection: Connection, queue: str | None, span: Window) -> list[Used]:
    """Who used how much, most first; `waiting` is left False."""
    parameters = {"queue": queue, "since": span.since, "until": span.until, "count": limits.SHARE_COUNT_MAX}
    cursor = await connection.execute(statement("report/used"), parameters)
    return [_used(row) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A tenant with ready jobs."""

    tenant_id: TenantId
    weight: float
    first_waits_seconds: float


async def waiting(connection: Connection, queue: str, span: Window) -> list[Waiting]:
    """Tenants with ready jobs in a queue, by id."""
    parameters = {"queue": queue, "until": span.until, "count": limits.SHARE_COUNT_MAX}
    cursor = await connection.execute(statement("report/waiting"), parameters)
    return [
        Waiting(tenant_id=TenantId(row[0]), weight=row[1], first_waits_seconds=row[2])
        for row in await cursor.fetchall()
    ]


def _used(row: TupleRow) -> Used:
    counts: Sequence[int] = row[6:11]
    return Used(
        queue=row[0],
        tenant_id=TenantId(row[1]),
        weight=row[2],
        worker_seconds=row[3],
        runs=row[4],
        running=row[5],
        waiting=False,
        outcomes={outcome: count for outcome, count in zip(OUTCOMES, counts, strict=True) if count},
        wait_seconds_p50=row[11],
        wait_seconds_p95=row[12],
        wait_seconds_max=row[13],
        first_waits_seconds=None,
    )
