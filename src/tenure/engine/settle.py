"""End runs: decide in core, write fenced, and tell the kind in the same transaction."""

import random
from collections.abc import Sequence

from tenure.core.job import Claim, JobEnd
from tenure.core.lifecycle import JobState
from tenure.core.run import RunEnd
from tenure.core.settlement import Settlement, decide
from tenure.engine.handlers import Kinds
from tenure.store import doorbells, jobs
from tenure.store.database import Database


async def settle_runs(
    database: Database, kinds: Kinds, ended: Sequence[tuple[Claim, RunEnd]], *, host: str
) -> list[JobEnd]:
    """Settle ended runs. A run missing from the answer was stale: another attempt owns its job, nothing was written.

    Safe to repeat: a repeat finds the fence gone.
    """
    claims = {claim.fence.job_id: claim for claim, _ in ended}
    settlements = [
        decide(claim, end, kinds[claim.kind].retry, chance=random.random())  # noqa: S311  jitter, not a secret
        for claim, end in ended
    ]
    settled: list[JobEnd] = []
    for batch in kinds.batches():
        own = [settlement for settlement in settlements if claims[settlement.fence.job_id].kind in batch]
        if own:
            settled += await _settle_batch(database, kinds, own, host)
    queued = {claims[end.job_id].queue for end in settled if end.state is JobState.QUEUED}
    await ring(database, queued)
    return settled


async def _settle_batch(database: Database, kinds: Kinds, settlements: Sequence[Settlement], host: str) -> list[JobEnd]:
    async with database.transaction() as connection:
        ends = await jobs.settle(connection, settlements, host=host)
        for end in ends:
            await kinds.tell(connection, end)
        return ends


async def ring(database: Database, queue_names: set[str]) -> None:
    """Wake the workers of queues that got jobs back."""
    if queue_names:
        async with database.transaction() as connection:
            for queue in sorted(queue_names):
                await doorbells.ring(connection, queue)
