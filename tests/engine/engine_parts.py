"""A worker on demand, in this process or in one of its own, and what is seen of it."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from psycopg.rows import dict_row

from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobView, NewJob
from tenure.core.lifecycle import TERMINAL
from tenure.core.run import RunRecord
from tenure.engine.cancel import cancel_job
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.engine.events import Fact, FactName
from tenure.engine.handlers import Kinds
from tenure.engine.worker import Worker, WorkerOptions
from tenure.store import jobs, runs
from tenure.store.database import Database

TENANT = TenantId("acme")
HERE = Path(__file__).parent


class Engine:
    """A database with a worker on demand, and the facts it observed."""

    def __init__(self, database: Database, kinds: Kinds, factory: str) -> None:
        self.database = database
        self.kinds = kinds
        self.factory = factory
        self.facts: list[Fact] = []

    def names(self) -> set[FactName]:
        return {fact.name for fact in self.facts}

    async def enqueue(self, kind: str = "script_process", *, tenant: TenantId = TENANT, **script: object) -> JobId:
        return await self.enqueue_job(new_job(kind=kind, tenant=tenant, args=msgspec.json.encode(script)))

    async def enqueue_job(self, job: NewJob) -> JobId:
        async with self.database.transaction() as connection:
            await enqueue(connection, [job])
        return job.id

    async def cancel(self, job_id: JobId) -> None:
        async with self.database.transaction() as connection:
            await cancel_job(connection, self.kinds, TENANT, job_id)

    async def find(self, job_id: JobId, tenant: TenantId = TENANT) -> JobView:
        async with self.database.connection() as connection:
            view = await jobs.find(connection, tenant, job_id)
        assert view is not None
        return view

    async def records(self, job_id: JobId, tenant: TenantId = TENANT) -> list[RunRecord]:
        async with self.database.connection() as connection:
            return await runs.of_job(connection, tenant, job_id)

    async def outcomes(self, job_id: JobId) -> list[str]:
        return [record.outcome for record in await self.records(job_id)]

    async def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        async with self.database.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return await cursor.fetchall()

    async def wait_ended(self, job_id: JobId, tenant: TenantId = TENANT) -> JobView:
        return await self.wait_until(job_id, lambda view: view.state in TERMINAL, tenant)

    async def wait_until(self, job_id: JobId, ready: Callable[[JobView], bool], tenant: TenantId = TENANT) -> JobView:
        async with asyncio.timeout(60):
            while not ready(view := await self.find(job_id, tenant)):  # noqa: ASYNC110  polled as a client would
                await asyncio.sleep(0.02)
        return view

    @asynccontextmanager
    async def worker(self, *, slots: int = 1, shutdown_seconds: float = 5.0) -> AsyncIterator[Worker]:
        options = WorkerOptions(queues=("test",), slots=slots, factory=self.factory, shutdown_seconds=shutdown_seconds)
        worker = Worker(self.database, self.kinds, options, self.facts.append)
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await task

    @asynccontextmanager
    async def lone_worker(self) -> AsyncIterator["LoneWorker"]:
        """A worker in a process of its own, ready to work."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, HERE / "lone_worker.py", self.database.settings.url, stdout=asyncio.subprocess.PIPE
        )
        worker = LoneWorker(process)
        try:
            await worker.wait_said(FactName.WORKER_STARTED)
            yield worker
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await worker.listening


class LoneWorker:
    """A worker process and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.listening = asyncio.create_task(self._listen())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def wait_said(self, name: FactName) -> None:
        await until(lambda: any(line.split()[0] == name for line in self.said))

    async def _listen(self) -> None:
        while line := await self.process.stdout.readline():
            self.said.append(line.decode().strip())


async def until(ready: Callable[[], bool]) -> None:
    """Until something outside PostgreSQL has happened."""
    async with asyncio.timeout(60):
        while not ready():  # noqa: ASYNC110  files and processes tell nobody
            await asyncio.sleep(0.02)


async def noted(note: Path) -> list[int]:
    """The process ids a handler wrote down, once it has."""
    await until(note.exists)
    return [int(pid) for pid in note.read_text().split()]  # noqa: ASYNC240  a few bytes


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def new_job(*, kind: str = "script_process", tenant: TenantId = TENANT, args: bytes = b"{}", **facts: object) -> NewJob:
    values = {"queue": "test", "max_attempts": 3, "max_crashes": 3, "lease_seconds": 2.0, **facts}
    return NewJob(id=new_job_id(), tenant_id=tenant, kind=kind, args=args, **values)
