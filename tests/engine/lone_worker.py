"""A worker in a process of its own, to be killed and stopped: `python lone_worker.py DATABASE_URL`.

Prints each fact it observed as one line, `worker.started` when it is ready.
"""

import asyncio
import sys

from rough_kinds import FACTORY, kinds

from tenure.core import limits
from tenure.engine.events import Fact
from tenure.engine.worker import Worker, WorkerOptions
from tenure.store.database import Database, DatabaseSettings


async def main() -> None:
    limits.REAP_SECONDS = 0.3
    async with Database(DatabaseSettings(url=sys.argv[1])) as database:
        await Worker(database, kinds(), WorkerOptions(queues=("test",), factory=FACTORY), observe).run()


def observe(fact: Fact) -> None:
    print(fact.name, fact.attempt, fact.detail, flush=True)  # noqa: T201  this is how the test hears of it


asyncio.run(main())
