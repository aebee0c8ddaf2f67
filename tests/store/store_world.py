"""One database, as many real connections as a test wants, and short words for what happens to jobs."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import uuid4

from psycopg import sql
from psycopg.rows import dict_row

from tenure.core.ids import JobId, TenantId, WorkerId
from tenure.core.job import Claim, JobEnd, NewJob
from tenure.core.lifecycle import JobState
from tenure.core.retry import RetryPolicy
from tenure.core.run import Cancelled, Crashed, Failed, Released, RunEnd, RunError, Succeeded
from tenure.core.settlement import decide
from tenure.engine.enqueue import new_job_id
from tenure.store import jobs, queues
from tenure.store.database import Connection, DatabaseSettings, connect

TENANT = TenantId("acme")
QUEUE = "test"
KIND = "work"
HOST = "test-host"
POLICY = RetryPolicy(base_seconds=60.0, jitter=0.0)

SUCCESS = Succeeded(result=b'{"rows":1}')
FAILURE = Failed(error=RunError(error_class="SomeError", message="later", code="some_error"))
FAILURE_FOR_GOOD = Failed(error=RunError(error_class="SomeError", message="no", code="some_error", retryable=False))
CRASH = Crashed(error=RunError(error_class="ProcessDied", message="died", code="process_died"))
RELEASE = Released(reason="the worker stops")
CANCELLED = Cancelled()

TABLES = ("jobs", "job_progress", "checkpoints", "runs", "lane_events", "lanes", "queues", "workers")


def new_job(**facts: Any) -> NewJob:
    values: dict[str, Any] = {
        "id": new_job_id(),
        "tenant_id": TENANT,
        "queue": QUEUE,
        "kind": KIND,
        "args": b"{}",
        "max_attempts": 3,
        "max_crashes": 3,
        "lease_seconds": 60.0,
        **facts,
    }
    return NewJob(**values)


class World:
    """`main` is the test's own connection; `connect` opens further ones. All are closed at the end."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self.settings = settings
        self.main: Connection
        self._connections: list[Connection] = []

    async def __aenter__(self) -> Self:
        self.main = await self.connect()
        await queues.ensure(self.main, QUEUE)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            await connection.close()

    async def connect(self) -> Connection:
        connection = await connect(self.settings)
        self._connections.append(connection)
        return connection

    async def reset(self) -> None:
        """An empty database again, faster than a new one or a TRUNCATE. Triggers off: run records refuse DELETE."""
        deletes = "; ".join(f"DELETE FROM tenure.{table}" for table in reversed(TABLES))
        await self.main.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {deletes}; COMMIT".encode())
        await queues.ensure(self.main, QUEUE)

    async def now(self, **later: float) -> datetime:
        return (await self.one("SELECT clock_timestamp() AS now"))["now"] + timedelta(**later)

    # ------------------------------------------------------------ what happens to jobs

    async def enqueue(self, *, connection: Connection | None = None, **facts: Any) -> JobId:
        job = new_job(**facts)
        await jobs.enqueue(connection or self.main, [job])
        return job.id

    async def enqueue_many(self, count: int, **facts: Any) -> list[JobId]:
        new = [new_job(**facts) for _ in range(count)]
        await jobs.enqueue(self.main, new)
        return [job.id for job in new]

    async def claim(
        self,
        count: int = 100,
        *,
        connection: Connection | None = None,
        kinds: tuple[str, ...] = (KIND,),
        now: datetime | None = None,
        queue: str = QUEUE,
    ) -> list[Claim]:
        request = jobs.ClaimRequest(queue=queue, worker_id=WorkerId(uuid4()), count=count, kinds=kinds)
        return await jobs.claim(connection or self.main, request, now=now)

    async def claim_one(self, job_id: JobId | None = None, **options: Any) -> Claim:
        claims = {claim.fence.job_id: claim for claim in await self.claim(**options)}
        return claims[job_id] if job_id is not None else next(iter(claims.values()))

    async def running(self, **facts: Any) -> Claim:
        """A new job that somebody runs now."""
        return await self.claim_one(await self.enqueue(**facts))

    async def settle(self, claim: Claim, end: RunEnd, *, connection: Connection | None = None) -> list[JobEnd]:
        settlement = decide(claim, end, POLICY, chance=0.0)
        return await jobs.settle(connection or self.main, [settlement], host=HOST)

    async def reap(
        self, *, connection: Connection | None = None, minutes: float = 60, kinds: tuple[str, ...] = (KIND,)
    ) -> list[JobEnd]:
        """Reap as if it were so many minutes later."""
        reaped = await jobs.reap(connection or self.main, kinds, now=await self.now(minutes=minutes))
        return [end for end, _ in reaped]

    async def cancel(self, job_id: JobId, *, connection: Connection | None = None) -> JobEnd | None:
        return await jobs.cancel(connection or self.main, TENANT, job_id)

    # ------------------------------------------------------------ what is seen of it

    async def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        async with self.main.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return await cursor.fetchall()

    async def one(self, query: str, *values: object) -> dict[str, Any]:
        (row,) = await self.rows(query, *values)
        return row

    async def job(self, job_id: JobId) -> dict[str, Any]:
        return await self.one("SELECT * FROM tenure.jobs WHERE id = %s", job_id)

    async def state(self, job_id: JobId) -> JobState:
        return JobState((await self.job(job_id))["state"])

    async def runs(self, job_id: JobId) -> list[dict[str, Any]]:
        return await self.rows("SELECT * FROM tenure.runs WHERE job_id = %s ORDER BY attempt", job_id)

    async def outcomes(self, job_id: JobId) -> list[str]:
        return [run["outcome"] for run in await self.runs(job_id)]

    async def lane(self, tenant: str = TENANT) -> dict[str, Any]:
        return await self.one("SELECT * FROM tenure.lanes WHERE queue = %s AND tenant_id = %s", QUEUE, tenant)

    async def set_lane(self, tenant: str = TENANT, **values: object) -> None:
        """Give the tenant a lane with these values."""
        columns = sql.SQL(", ").join(map(sql.Identifier, values))
        await self.main.execute(
            sql.SQL(
                "INSERT INTO tenure.lanes (queue, tenant_id, {0}) VALUES (%s, %s, {1}) "
                "ON CONFLICT (queue, tenant_id) DO UPDATE SET ({0}) = ROW ({1})"
            ).format(columns, sql.SQL(", ").join(sql.Placeholder() * len(values))),
            [QUEUE, tenant, *values.values(), *values.values()],
        )

    async def set_queue(self, **values: object) -> None:
        for name, value in values.items():
            await self.main.execute(sql.SQL("UPDATE tenure.queues SET {} = %s").format(sql.Identifier(name)), [value])

    async def everything(self) -> dict[str, list[str]]:
        """Every row of every table of the engine, as text: what must not change when nothing may be written."""
        return {
            table: [row["row"] for row in await self.rows(f"SELECT t::text AS row FROM tenure.{table} AS t ORDER BY 1")]
            for table in TABLES
        }

    # ------------------------------------------------------------ races

    async def wait_blocked(self, connection: Connection) -> None:
        """Until PostgreSQL itself says that the connection waits for another one."""
        pid = connection.info.backend_pid
        async with asyncio.timeout(20):
            while not (await self.one("SELECT pg_blocking_pids(%s) AS pids", pid))["pids"]:  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    async def started_and_blocked(self, connection: Connection, work: Awaitable[Any]) -> "asyncio.Task[Any]":
        """Start a statement that has to wait; returns once it does."""
        task = asyncio.ensure_future(work)
        await self.wait_blocked(connection)
        assert not task.done()
        return task


def together(*works: Awaitable[Any]) -> "asyncio.Future[list[Any]]":
    """Start all at the same moment."""
    barrier = asyncio.Barrier(len(works))

    async def one(work: Awaitable[Any]) -> Any:
        async with barrier:
            pass
        return await work

    return asyncio.gather(*(one(work) for work in works))


def utc(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)
