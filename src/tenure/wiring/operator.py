"""What operators ask and change, on a database: the API and the command line both come here."""

from dataclasses import dataclass

from tenure.core.ids import JobId, TenantId
from tenure.core.shares import FairnessReport
from tenure.core.tuning import LaneChanges, LaneSettings, LaneView, QueueChanges, QueueSettings, QueueView
from tenure.core.why import JobWhy, TenantWhy
from tenure.engine import report, tune, why
from tenure.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One connection for each question."""

    database: Database

    async def list_queues(self) -> tuple[QueueView, ...]:
        async with self.database.connection() as connection:
            return await tune.list_queues(connection)

    async def tune_queue(self, actor: str, queue: str, changes: QueueChanges) -> QueueSettings:
        async with self.database.connection() as connection:
            return await tune.tune_queue(connection, actor, queue, changes)

    async def list_lanes(self, queue: str, count: int, after: TenantId | None) -> tuple[LaneView, ...]:
        async with self.database.connection() as connection:
            return await tune.list_lanes(connection, queue, count, after)

    async def tune_lane(self, actor: str, queue: str, tenant_id: TenantId, changes: LaneChanges) -> LaneSettings:
        async with self.database.connection() as connection:
            return await tune.tune_lane(connection, actor, queue, tenant_id, changes)

    async def why_job(self, tenant_id: TenantId | None, job_id: JobId) -> JobWhy:
        async with self.database.connection() as connection:
            return await why.why_job(connection, tenant_id, job_id)

    async def why_tenant(self, queue: str, tenant_id: TenantId) -> TenantWhy:
        async with self.database.connection() as connection:
            return await why.why_tenant(connection, queue, tenant_id)

    async def fairness(self, queue: str | None, seconds: float) -> FairnessReport:
        async with self.database.connection() as connection:
            return await report.fairness_report(connection, queue, seconds)
