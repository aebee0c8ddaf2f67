"""A database with a queue, workers that are only rows, and jobs that are claimed and settled by hand."""

from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from psycopg import sql
from psycopg.rows import dict_row

from tenure.core.ids import TenantId, WorkerId
from tenure.core.job import NewJob
from tenure.core.retry import RetryPolicy
from tenure.core.run import Failed, RunError, Succeeded
from tenure.core.settlement import decide
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.store import jobs, lanes, queues, workers
from tenure.store.database import connect
from tenure.store.workers import WorkerIdentity

ACME, OTHER, THIRD = TenantId("acme"), TenantId("other"), TenantId("third")
QUEUE, KIND = "test", "work"
SUCCESS = Succeeded(result=b"null")
FAILURE = Failed(error=RunError(error_class="SomeError", message="the secret host", code="some_error", phase="read"))
POLICY = RetryPolicy(base_seconds=60.0, jitter=0.0)


class OperatorWorld:
    def __init__(self, connection):
        self.connection = connection
        self.worker_id = WorkerId(uuid4())

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings):
        """On a database whose other tables are empty already."""
        connection = await connect(settings)
        try:
            await connection.execute("DELETE FROM tenure.audit_log")
            await queues.ensure(connection, QUEUE)
            yield cls(connection)
        finally:
            await connection.close()

    async def hire(self, slots=1, *, queue=QUEUE):
        """A worker that was heard of just now."""
        worker = WorkerIdentity(
            id=self.worker_id, host="worker-host", pid=4711, queues=(queue,), slots=slots, version="1"
        )
        await workers.register(self.connection, worker)

    async def enqueue(self, tenant=ACME, count=1, **facts):
        values = {"queue": QUEUE, "kind": KIND, "args": b"{}", "max_attempts": 3, "max_crashes": 3, **facts}
        new = [NewJob(id=new_job_id(), tenant_id=tenant, lease_seconds=60.0, **values) for _ in range(count)]
        await enqueue(self.connection, new)
        return new[0].id if count == 1 else [job.id for job in new]

    async def enqueue_later(self, tenant=ACME, *, seconds):
        return await self.enqueue(tenant, not_before=await self.now() + timedelta(seconds=seconds))

    async def claim(self, count=1):
        request = jobs.ClaimRequest(queue=QUEUE, worker_id=self.worker_id, count=count, kinds=(KIND,))
        return await jobs.claim(self.connection, request)

    async def settle(self, claim, end=SUCCESS, *, now=None):
        settlement = decide(claim, end, POLICY, chance=0.0)
        return await jobs.settle(self.connection, [settlement], host="worker-host", now=now)

    async def fold(self):
        async with self.connection.transaction():
            await queues.lock(self.connection, QUEUE)
            await lanes.fold(self.connection, QUEUE)

    async def set_lane(self, tenant=ACME, **values):
        names = sql.SQL(", ").join(map(sql.Identifier, values))
        await self.connection.execute(
            sql.SQL(
                "INSERT INTO tenure.lanes (queue, tenant_id, {0}) VALUES (%s, %s, {1}) "
                "ON CONFLICT (queue, tenant_id) DO UPDATE SET ({0}) = ROW ({1})"
            ).format(names, sql.SQL(", ").join(sql.Placeholder() * len(values))),
            [QUEUE, tenant, *values.values(), *values.values()],
        )

    async def set_queue(self, **values):
        for name, value in values.items():
            await self.execute(sql.SQL("UPDATE tenure.queues SET {} = %s").format(sql.Identifier(name)), value)

    async def lane(self, tenant=ACME):
        return await self.one("SELECT * FROM tenure.lanes WHERE queue = %s AND tenant_id = %s", QUEUE, tenant)

    async def now(self):
        return (await self.one("SELECT clock_timestamp() AS now"))["now"]

    async def execute(self, query, *values):
        return await self.connection.execute(query, values or None)

    async def one(self, query, *values):
        (row,) = await self.rows(query, *values)
        return row

    async def rows(self, query, *values):
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return await cursor.fetchall()
