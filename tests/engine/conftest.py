import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobView, NewJob
from tenure.core.lifecycle import TERMINAL
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.engine.events import Fact
from tenure.engine.worker import Worker, WorkerOptions
from tenure.store import jobs
from tenure.store.database import Database
from tenure.testing.kinds import FACTORY, kinds

TENANT = TenantId("acme")


class Engine:
    """A database with a worker on demand, and the facts it observed."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.kinds = kinds()
        self.facts: list[Fact] = []

    async def enqueue(self, kind: str = "script_process", *, tenant: TenantId = TENANT, **script: object) -> JobId:
        job = new_job(kind=kind, tenant=tenant, args=msgspec.json.encode(script))
        async with self.database.transaction() as connection:
            await enqueue(connection, [job])
        return job.id

    async def find(self, job_id: JobId, tenant: TenantId = TENANT) -> JobView:
        async with self.database.connection() as connection:
            view = await jobs.find(connection, tenant, job_id)
        assert view is not None
        return view

    async def wait_ended(self, job_id: JobId) -> JobView:
        return await self.wait_until(job_id, lambda view: view.state in TERMINAL)

    async def wait_until(self, job_id: JobId, ready: Callable[[JobView], bool]) -> JobView:
        async with asyncio.timeout(60):
            while not ready(view := await self.find(job_id)):
                await asyncio.sleep(0.02)
        return view

    @asynccontextmanager
    async def worker(self, *, slots: int = 2, shutdown_seconds: float = 5.0) -> AsyncIterator[Worker]:
        options = WorkerOptions(
            queues=("test",), slots=slots, factory=FACTORY, shutdown_seconds=shutdown_seconds
        )
        worker = Worker(self.database, self.kinds, options, self.facts.append)
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await task


def new_job(*, kind: str = "script_process", tenant: TenantId = TENANT, args: bytes = b"{}", **facts: object) -> NewJob:
    values = {"queue": "test", "max_attempts": 3, "max_crashes": 3, "lease_seconds": 2.0, **facts}
    return NewJob(id=new_job_id(), tenant_id=tenant, kind=kind, args=args, **values)


@pytest.fixture
async def engine(database: Database) -> Engine:
    return Engine(database)


Sleeper = Callable[[float], Awaitable[None]]
