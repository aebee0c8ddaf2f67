"""Keep leases alive from a thread of its own, and stop runs whose lease can no longer be trusted.

A busy handler or event loop cannot starve it. It has its own connection. Expiry is the database's to judge; here a run
is stopped by the worker's own clock, counted from an instant before the last acknowledged heartbeat was *sent*
(`core.lease`), so a paused or cut-off worker is silent before anybody else may start the job.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tenure.core.ids import JobId, WorkerId
from tenure.core.job import Claim
from tenure.core.lease import heartbeat_seconds, stop_at
from tenure.engine.clock import monotonic_seconds
from tenure.engine.events import Fact, FactName, Observer
from tenure.store import jobs, progress, workers
from tenure.store.database import Connection, DatabaseSettings, connect
from tenure.store.jobs import Beat
from tenure.store.progress import Progress

TICK_SECONDS = 0.2
HEARTBEAT_SECONDS_MAX = 3.0
"""A cancel request reaches the worker on a heartbeat's answer, so they are never further apart than this."""
DATABASE_SECONDS = 5.0
PRESENCE_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class LiveRun:
    """A run this worker holds the lease of. Shared between the worker's loop and the heart; `Heart` locks it."""

    claim: Claim
    stop_at: float
    """Monotonic instant at which it must be stopped unless a newer heartbeat is acknowledged."""
    on_cancel: Callable[[], None]
    on_lost: Callable[[], None]
    """Both are called from the heart's thread and must not block."""
    next_beat_at: float = 0.0
    progress: Progress | None = None
    checkpoint: bytes | None = None
    is_cancelled: bool = False
    is_lost: bool = False


@dataclass(slots=True)
class Heart:
    """The heartbeat thread of one worker. `add` before a run starts, `remove` when it has ended."""

    settings: DatabaseSettings
    worker_id: WorkerId
    observe: Observer
    _runs: dict[JobId, LiveRun] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._beat_until_stopped()), name="tenure-heart")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def add(self, run: LiveRun) -> None:
        now = monotonic_seconds()
        run.next_beat_at = now + _interval(run.claim)
        with self._lock:
            self._runs[run.claim.fence.job_id] = run

    def remove(self, run: LiveRun) -> None:
        with self._lock:
            self._runs.pop(run.claim.fence.job_id, None)

    def report(self, run: LiveRun, report: Progress) -> None:
        """Keep the newest progress; it travels with the next tick."""
        with self._lock:
            run.progress = report

    def keep(self, run: LiveRun, value: bytes) -> None:
        """Keep the newest checkpoint; it travels with the next tick."""
        with self._lock:
            run.checkpoint = value

    async def flush(self, run: LiveRun, connection: Connection) -> None:
        """Write a checkpoint that no tick has taken yet, before the run is handed back."""
        with self._lock:
            value = run.checkpoint
        if value is not None:
            await progress.checkpoint(connection, {run.claim.fence: value})

    async def _beat_until_stopped(self) -> None:
        watch = asyncio.create_task(self._watch())
        connection: Connection | None = None
        present_at = 0.0
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(DATABASE_SECONDS):
                    if connection is None:
                        connection = await connect(self.settings, name="tenure heart")
                    if monotonic_seconds() >= present_at:
                        await workers.beat(connection, self.worker_id)
                        present_at = monotonic_seconds() + PRESENCE_SECONDS
                    await self._tick(connection)
            except Exception as error:  # noqa: BLE001  whatever one beat met, the next must be tried
                detail = f"heartbeat: {type(error).__name__}: {error}".partition("\n")[0]
                self.observe(Fact(name=FactName.DATABASE_AWAY, detail=detail))
                await _discard(connection)
                connection = None
            await asyncio.sleep(TICK_SECONDS)
        watch.cancel()
        await _discard(connection)

    async def _tick(self, connection: Connection) -> None:
        now = monotonic_seconds()
        with self._lock:
            runs = [run for run in self._runs.values() if not run.is_lost]
        due = [run for run in runs if now >= run.next_beat_at]
        if due:
            answer = await jobs.heartbeat(connection, [run.claim.fence for run in due])
            self._hear(due, answer, now)
        await self._write_checkpoints(runs, connection)
        await self._write_progress(runs, connection)

    async def _write_checkpoints(self, runs: list[LiveRun], connection: Connection) -> None:
        """A checkpoint stays until it is written: the next attempt resumes from it."""
        with self._lock:
            values = {run.claim.fence: run.checkpoint for run in runs if run.checkpoint is not None}
        if not values:
            return
        written = await progress.checkpoint(connection, values)
        with self._lock:
            for run in runs:
                fence = run.claim.fence
                if fence.job_id in written and run.checkpoint is values.get(fence):
                    run.checkpoint = None

    async def _write_progress(self, runs: list[LiveRun], connection: Connection) -> None:
        """Progress is for people: what one tick could not write, newer progress replaces."""
        with self._lock:
            reports = {run.claim.fence: run.progress for run in runs if run.progress is not None}
            for run in runs:
                run.progress = None
        if reports:
            await progress.record(connection, reports)

    def _hear(self, due: list[LiveRun], answer: dict[JobId, Beat], sent_at: float) -> None:
        for run in due:
            match answer.get(run.claim.fence.job_id):
                case None:
                    self._lose(run, "another attempt owns the job, or it has ended")
                case Beat.HELD_UP:
                    continue  # still due: tried again with the next tick, until `stop_at`
                case beat:
                    run.stop_at = stop_at(sent_at, run.claim.lease_seconds)
                    run.next_beat_at = sent_at + _interval(run.claim)
                    if beat is Beat.CANCEL_REQUESTED and not run.is_cancelled:
                        run.is_cancelled = True
                        run.on_cancel()

    async def _watch(self) -> None:
        """Stop runs whose heartbeat was not acknowledged in time, whatever the database is doing."""
        while True:
            now = monotonic_seconds()
            with self._lock:
                late = [run for run in self._runs.values() if now >= run.stop_at and not run.is_lost]
            for run in late:
                self._lose(run, "no heartbeat was acknowledged in time")
            await asyncio.sleep(TICK_SECONDS / 2)

    def _lose(self, run: LiveRun, why: str) -> None:
        with self._lock:
            known = self._runs.get(run.claim.fence.job_id) is run
        if known and not run.is_lost:
            run.is_lost = True
            run.on_lost()
            self.observe(Fact.of(FactName.LEASE_LOST, run.claim, why))


def _interval(claim: Claim) -> float:
    return min(heartbeat_seconds(claim.lease_seconds), HEARTBEAT_SECONDS_MAX)


async def _discard(connection: Connection | None) -> None:
    """Close a connection whose state is unknown; the next beat opens a new one."""
    if connection is not None:
        await connection.close()
