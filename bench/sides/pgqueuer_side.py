"""PgQueuer, as the bench drives it: asyncpg and uvloop, as its own benchmark does. Runs in its own environment."""

import argparse
import asyncio
import json
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from tally import Tally

BATCH = 1_000


async def setup(options: argparse.Namespace) -> None:
    connection = await asyncpg.connect(options.url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def fill(options: argparse.Namespace) -> None:
    connection = await asyncpg.connect(options.url)
    queries = Queries(AsyncpgDriver(connection))
    began = time.monotonic()
    for start in range(0, options.jobs, BATCH):
        count = min(BATCH, options.jobs - start)
        await queries.enqueue(["noop"] * count, [b"{}"] * count, [0] * count)
    _say(seconds=time.monotonic() - began)
    await connection.close()


async def single(options: argparse.Namespace) -> None:
    connection = await asyncpg.connect(options.url)
    queries = Queries(AsyncpgDriver(connection))
    instants = []
    for _ in range(options.jobs):
        before = time.monotonic()
        await queries.enqueue("noop", b"{}")
        instants.append((before, time.monotonic()))
        await asyncio.sleep(options.gap)
    _say(instants=instants)
    await connection.close()


async def work(options: argparse.Namespace) -> None:
    tally = Tally(Path(options.tally))
    connection = await asyncpg.connect(options.url)
    pgq = PgQueuer.from_asyncpg_connection(connection)

    @pgq.entrypoint("noop")
    async def noop(_: Job) -> None:
        tally.mark()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, pgq.shutdown.set)
    _say(ready=True)
    await pgq.run(batch_size=options.batch)


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("setup", "fill", "single", "work"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--tally")
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args()
    uvloop.run({"setup": setup, "fill": fill, "single": single, "work": work}[options.command](options))


if __name__ == "__main__":
    main()
