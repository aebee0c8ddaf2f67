"""The worker: claims while it has free slots, runs, settles; housekeeping beside it; stops in stages."""

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tenure import __version__
from tenure.core import limits
from tenure.core.errors import DatabaseUnavailableError
from tenure.core.ids import JobId, WorkerId
from tenure.core.job import Claim
from tenure.core.lease import stop_at
from tenure.engine import housekeeping
from tenure.engine.clock import monotonic_seconds
from tenure.engine.doorbells.postgres import hear_rings
from tenure.engine.events import Fact, FactName, Observer
from tenure.engine.execute import execute_run
from tenure.engine.handlers import Isolation, Kinds
from tenure.engine.heartbeat import Heart, LiveRun
from tenure.engine.isolation.process import ChildPool
from tenure.engine.isolation.work import StopReason, Work
from tenure.engine.settle import Settler
from tenure.store import jobs, queues, workers
from tenure.store.database import Database
from tenure.store.workers import WorkerIdentity

LANE_CHECK_SECONDS = 10.0
PARTITION_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Something to do beside the jobs, about every `seconds`, in every worker; it must be safe to do twice at once."""

    seconds: float
    run: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What one worker process does. `shutdown_seconds`: how long running jobs may go on after a stop request."""

    queues: tuple[str, ...]
    slots: int = 1
    factory: str
    """`module:function` that gives the same kinds inside a child process."""
    shutdown_seconds: float = 25.0
    chores: tuple[Chore, ...] = ()


class Worker:
    """One worker process: `await run()`; `stop()` asks it to finish, a second `stop()` makes it end at once."""

    def __init__(self, database: Database, kinds: Kinds, options: WorkerOptions, observe: Observer) -> None:
        self._database = database
        self._kinds = kinds
        self._options = options
        self._observe = observe
        self._identity = WorkerIdentity(
            id=WorkerId(uuid4()),
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=options.queues,
            slots=options.slots,
            version=__version__,
        )
        self._heart = Heart(database.settings, self._identity.id, observe)
        self._settler = Settler(database, kinds, self._heart, observe, host=self._identity.host)
        self._children = ChildPool(options.factory)
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()
        self._runs: dict[JobId, Work] = {}
        self._carrying: set[asyncio.Task[None]] = set()
        """Every claimed job until its end is written: a slot is free again as soon as its run is over."""

    async def run(self) -> None:
        """Work until stopped. Returns when every run has ended or was handed back."""
        await self._introduce()
        try:
            async with self._beside(self._hear(), self._keep_house(), self._settler.run()):
                while not self._stopping.is_set():
                    await self._wait_for_wake(more=await self._claim_once())
                await self._finish()
        finally:
            # However this ends: a heart that went on alone would hold the leases of runs that nobody carries.
            self._heart.stop()
            await self._children.close()
        with contextlib.suppress(DatabaseUnavailableError):
            async with self._database.connection() as connection:
                await workers.beat(connection, self._identity.id, stopped=True)
        self._tell(FactName.WORKER_STOPPED)

    def stop(self) -> None:
        """First call: claim nothing more, finish. Second call: hand everything back now."""
        if self._stopping.is_set():
            self._forced.set()
        self._stopping.set()
        self._wake.set()

    async def _introduce(self) -> None:
        async with self._database.transaction() as connection:
            await workers.register(connection, self._identity)
            for queue in self._options.queues:
                await queues.ensure(connection, queue)
        if any(kind.isolation is Isolation.PROCESS for kind in self._kinds.values()):
            await self._children.warm(self._options.slots)
        self._heart.start()
        self._tell(FactName.WORKER_STARTED, f"queues {', '.join(self._options.queues)}")

    @contextlib.asynccontextmanager
    async def _beside(self, *coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim_once(self) -> bool:
        """Fill the free slots. True: there may be more work than slots, so claim again as soon as one is free."""
        self._wake.clear()
        for queue in random.sample(self._options.queues, len(self._options.queues)):
            free = self._free_slots()
            if free <= 0:
                return True
            request = jobs.ClaimRequest(queue=queue, worker_id=self._identity.id, count=free, kinds=tuple(self._kinds))
            sent_at = monotonic_seconds()
            try:
                async with self._database.connection() as connection:
                    claims = await jobs.claim(connection, request)
            except DatabaseUnavailableError as error:
                self._tell(FactName.DATABASE_AWAY, f"claim: {error}")
                return False
            for claim in claims:
                self._begin(claim, sent_at)
            if claims:
                return True
        return False

    def _free_slots(self) -> int:
        """Claiming goes on while ends are being written, until as many wait as there are slots."""
        return self._options.slots - max(len(self._runs), self._settler.unwritten)

    async def _wait_for_wake(self, *, more: bool) -> None:
        """Until a slot is free (when there may be more work) or somebody rings; polling is the floor."""
        if more and self._free_slots() > 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.POLL_SECONDS * random.uniform(0.8, 1.0)):  # noqa: S311
                await self._wake.wait()

    def _begin(self, claim: Claim, sent_at: float) -> None:
        loop = asyncio.get_running_loop()
        live = LiveRun(
            claim=claim,
            stop_at=stop_at(sent_at, claim.lease_seconds),
            on_cancel=lambda: _call_soon(loop, work.stop, StopReason.CANCEL),
            on_lost=lambda: _call_soon(loop, work.stop, StopReason.LOST),
        )
        work = Work(
            claim=claim,
            kind=self._kinds[claim.kind],
            report=lambda progress: self._heart.report(live, progress),
            checkpoint=lambda value: self._heart.keep(live, value),
        )
        self._heart.add(live)
        self._runs[claim.fence.job_id] = work
        carrying = asyncio.create_task(self._carry(work, live))
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)
        self._observe(Fact.of(FactName.JOB_CLAIMED, claim))

    async def _carry(self, work: Work, live: LiveRun) -> None:
        """One claimed job from start to settled."""
        try:
            end = await execute_run(work, self._children)
        finally:
            # Out of the heart first: a heartbeat that crosses the settle would take the ended lease for a lost one.
            self._heart.remove(live)
            del self._runs[work.claim.fence.job_id]
            self._wake.set()
        if work.stop_reason is StopReason.LOST:
            self._observe(Fact.of(FactName.RUN_STALE, work.claim, "the lease was lost; the result is dropped"))
            return
        await self._settler.settle(live, end)
        self._wake.set()

    async def _finish(self) -> None:
        """Let running jobs end; after the grace, or at once when forced, hand them back."""
        self._tell(FactName.WORKER_STOPPING, f"{len(self._runs)} running")
        if not self._carrying:
            return
        forced = asyncio.create_task(self._forced.wait())
        ended = asyncio.create_task(_all_done(self._carrying))
        await asyncio.wait([ended, forced], timeout=self._options.shutdown_seconds, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        for work in list(self._runs.values()):
            work.stop(StopReason.RELEASE)
        if self._forced.is_set():
            self._children.kill()
        await ended

    async def _hear(self) -> None:
        await hear_rings(self._database.settings, self._options.queues, self._wake.set, self._observe)

    async def _keep_house(self) -> None:
        """Promote, reap and expire every two seconds or so; check the lanes and partitions now and then."""
        database, kinds, observe, queue_names = self._database, self._kinds, self._observe, self._options.queues
        chores = (
            Chore(seconds=limits.REAP_SECONDS, run=lambda: housekeeping.promote_due(database)),
            Chore(seconds=limits.REAP_SECONDS, run=lambda: housekeeping.reap_lapsed(database, kinds, observe)),
            Chore(seconds=limits.REAP_SECONDS, run=lambda: housekeeping.expire_late(database, kinds, observe)),
            Chore(seconds=LANE_CHECK_SECONDS, run=lambda: housekeeping.check_lanes(database, queue_names, observe)),
            Chore(seconds=PARTITION_SECONDS, run=lambda: housekeeping.make_partitions(database)),
        )
        await asyncio.gather(*(self._repeat(chore) for chore in (*chores, *self._options.chores)))

    async def _repeat(self, chore: Chore) -> None:
        while True:
            # Spread out, so that many workers do not come at the same moment.
            await asyncio.sleep(chore.seconds * random.uniform(0.5, 1.0))  # noqa: S311
            try:
                await chore.run()
            except DatabaseUnavailableError as error:
                self._tell(FactName.DATABASE_AWAY, f"housekeeping: {error}")
            except Exception as error:  # noqa: BLE001  one chore that fails must not end the others
                self._tell(FactName.HOUSEKEEPING_FAILED, f"{type(error).__name__}: {error}".partition("\n")[0])

    def _tell(self, name: FactName, detail: str | None = None) -> None:
        self._observe(Fact(name=name, detail=detail))


async def _all_done(tasks: Collection[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _call_soon(loop: asyncio.AbstractEventLoop, stop: Callable[[StopReason], None], reason: StopReason) -> None:
    """From the heart's thread into the worker's loop, which may be closing."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop, reason)
