"""End runs: decide in core, write fenced, and tell the kind in the same transaction.

Ends that come while a write is under way wait for it and go together in the next one: the busier the worker, the
larger its batches, and nothing waits for a timer.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tenure.core import limits
from tenure.core.errors import DatabaseUnavailableError
from tenure.core.job import JobEnd
from tenure.core.lifecycle import JobState
from tenure.core.run import RunEnd
from tenure.core.settlement import decide
from tenure.engine.clock import monotonic_seconds
from tenure.engine.events import Fact, FactName, Observer
from tenure.engine.handlers import Kinds
from tenure.engine.heartbeat import Heart, LiveRun
from tenure.store import doorbells, jobs
from tenure.store.database import Database

RETRY_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class EndedRun:
    """A run that is over, on its way into the database."""

    live: LiveRun
    end: RunEnd
    written: asyncio.Event = field(default_factory=asyncio.Event)
    """Also set when it was given up: nothing more will be tried."""


class Settler:
    """Writes the ends of one worker's runs. `run()` beside the worker; `await settle(...)` for each ended run."""

    def __init__(self, database: Database, kinds: Kinds, heart: Heart, observe: Observer, *, host: str) -> None:
        self._database = database
        self._kinds = kinds
        self._heart = heart
        self._observe = observe
        self._host = host
        self._ended: asyncio.Queue[EndedRun] = asyncio.Queue()
        self.unwritten = 0

    async def settle(self, live: LiveRun, end: RunEnd) -> None:
        """Returns once the end is written, found stale, or given up because the lease can no longer be ours."""
        ended = EndedRun(live=live, end=end)
        self.unwritten += 1
        try:
            self._ended.put_nowait(ended)
            await ended.written.wait()
        finally:
            self.unwritten -= 1

    async def run(self) -> None:
        """Write what comes, for ever."""
        while True:
            waiting = [await self._ended.get()]
            while len(waiting) < limits.SETTLE_COUNT_MAX and not self._ended.empty():
                waiting.append(self._ended.get_nowait())
            await asyncio.gather(*(self._write(group) for group in self._groups(waiting)))

    def _groups(self, waiting: Sequence[EndedRun]) -> Iterable[Sequence[EndedRun]]:
        """Runs whose ends may share a transaction. One whose kind is told of it goes alone: telling may fail."""
        plain = [ended for ended in waiting if self._kinds[ended.live.claim.kind].on_end is None]
        told = [[ended] for ended in waiting if self._kinds[ended.live.claim.kind].on_end is not None]
        return ([plain] if plain else []) + told

    async def _write(self, group: Sequence[EndedRun]) -> None:
        try:
            settled = await self._settle(group)
        except Exception as error:  # noqa: BLE001  whatever it was, no run may vanish without a word
            self._try_again(group, error)
            return
        for ended in group:
            end = settled.get(ended.live.claim.fence.job_id)
            if end is None:
                self._tell(FactName.RUN_STALE, "nothing was written", ended)
            else:
                self._tell(FactName.RUN_ENDED, f"{type(ended.end).__name__.lower()}, the job is {end.state}", ended)
            ended.written.set()

    async def _settle(self, group: Sequence[EndedRun]) -> dict[object, JobEnd]:
        """One transaction. A run missing from the answer was stale. Safe to repeat: a repeat finds the fence gone."""
        claims = {ended.live.claim.fence.job_id: ended.live.claim for ended in group}
        settlements = [
            decide(
                ended.live.claim,
                ended.end,
                self._kinds[ended.live.claim.kind].retry,
                chance=random.random(),  # noqa: S311  jitter, not a secret
            )
            for ended in group
        ]
        async with self._database.transaction() as connection:
            for ended in group:
                await self._heart.flush(ended.live, connection)
            ends = await jobs.settle(connection, settlements, host=self._host)
            for end in ends:
                await self._kinds.tell(connection, end)
            queued = {claims[end.job_id].queue for end in ends if end.state is JobState.QUEUED}
            for queue in sorted(queued):
                await doorbells.ring(connection, queue)
        return {end.job_id: end for end in ends}

    def _try_again(self, group: Sequence[EndedRun], error: Exception) -> None:
        """While the database is away, for as long as the lease can still be ours; after that another attempt has it."""
        away = isinstance(error, DatabaseUnavailableError)
        detail = f"settle: {error if away else f'{type(error).__name__}: {error}'}".partition("\n")[0]
        for ended in group:
            self._tell(FactName.DATABASE_AWAY if away else FactName.SETTLE_FAILED, detail, ended)
            if monotonic_seconds() >= ended.live.stop_at:
                ended.written.set()
            else:
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._ended.put_nowait, ended)

    def _tell(self, name: FactName, detail: str, ended: EndedRun) -> None:
        self._observe(Fact.of(name, ended.live.claim, detail))
