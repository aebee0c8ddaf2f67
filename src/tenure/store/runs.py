"""Run records: append-only, written by `jobs/settle` and `jobs/reap` in the transaction that ends the run."""

from typing import Any

from psycopg.rows import kwargs_row

from tenure.core.ids import JobId, TenantId
from tenure.core.run import RunOutcome, RunRecord
from tenure.store.database import Connection
from tenure.store.statements import statement


async def of_job(connection: Connection, tenant_id: TenantId, job_id: JobId) -> list[RunRecord]:
    """Every recorded run of one job, by attempt."""
    async with connection.cursor(row_factory=kwargs_row(_record)) as cursor:
        await cursor.execute(statement("runs/of_job"), {"tenant_id": tenant_id, "job_id": job_id})
        return await cursor.fetchall()


async def create_partitions(connection: Connection, *, months_ahead: int) -> int:
    """Make monthly partitions ahead of time; returns how many were made."""
    cursor = await connection.execute(statement("runs/create_partitions"), {"months_ahead": months_ahead})
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


def _record(*, outcome: str, **columns: Any) -> RunRecord:
    return RunRecord(outcome=RunOutcome(outcome), **columns)
