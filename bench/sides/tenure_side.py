"""Tenure, as the bench drives it: a real worker process with kinds that run in its event loop or in child processes."""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tally import Tally
from tenure.core.ids import TenantId
from tenure.core.job import NewJob
from tenure.engine.context import RunContext
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.engine.events import Fact, FactName
from tenure.engine.handlers import Isolation, Kind, Kinds
from tenure.engine.worker import Worker, WorkerOptions
from tenure.store import queues
from tenure.store.database import Database, DatabaseSettings
from tenure.store.migrate import migrate

QUEUE = "bench"
BATCH = 1_000
FACTORY = "tenure_side:kinds"
LEASE_SECONDS = 60.0
COMPLAINTS = {
    FactName.RUN_STALE,
    FactName.LEASE_LOST,
    FactName.LEASE_LAPSED,
    FactName.LANE_LOST_SIGHT,
    FactName.LANE_DRIFTED,
    FactName.SETTLE_FAILED,
    FactName.DATABASE_AWAY,
    FactName.HOUSEKEEPING_FAILED,
}
"""What must not happen while figures are taken; printed."""


class Starts:
    """Where `noop` notes its starts, when it is asked to."""

    tally: Tally | None = None


async def noop(_: RunContext) -> None:
    """Nothing, at once."""
    if Starts.tally is not None:
        Starts.tally.mark()


async def sleep(context: RunContext) -> dict[str, float]:
    """Hold a slot; the result says when the handler began, by the machine's clock."""
    started = time.time()
    await asyncio.sleep(context.args["seconds"])
    return {"started": started}


def sleep_or_die(context: RunContext) -> None:
    """Hold a slot of a child process; now and then, kill the process in the middle."""
    dies = random.random() < context.args["crash_share"]
    time.sleep(context.args["seconds"] * (random.random() if dies else 1.0))
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)


def kinds() -> Kinds:
    return Kinds(
        [
            _kind("noop", noop, Isolation.TASK),
            _kind("sleep", sleep, Isolation.TASK),
            _kind("sleep_or_die", sleep_or_die, Isolation.PROCESS),
        ]
    )


def _kind(name: str, handler: object, isolation: Isolation) -> Kind:
    return Kind(name=name, handler=handler, queue=QUEUE, isolation=isolation, lease_seconds=LEASE_SECONDS)


def new_job(tenant: str, kind: str = "noop", args: bytes = b"{}") -> NewJob:
    return NewJob(
        id=new_job_id(),
        tenant_id=TenantId(tenant),
        queue=QUEUE,
        kind=kind,
        args=args,
        max_attempts=25,
        max_crashes=25,
        lease_seconds=LEASE_SECONDS,
    )


async def setup(options: argparse.Namespace) -> None:
    """Tables and the queue's row."""
    settings = DatabaseSettings(url=options.url)
    await migrate(settings)
    async with Database(settings) as database, database.transaction() as connection:
        await queues.ensure(connection, QUEUE)


async def fill(options: argparse.Namespace) -> None:
    """Enqueue in batches through the API, jobs dealt to the tenants in turn; prints how long it took."""
    jobs = [new_job(f"tenant{number % options.tenants}") for number in range(options.jobs)]
    async with Database(DatabaseSettings(url=options.url)) as database:
        began = time.monotonic()
        for start in range(0, len(jobs), BATCH):
            async with database.transaction() as connection:
                await enqueue(connection, jobs[start : start + BATCH])
        _say(seconds=time.monotonic() - began)


async def single(options: argparse.Namespace) -> None:
    """Enqueue one job a transaction; with `gap`, wait in between. Prints (before, committed) of each."""
    instants = []
    async with Database(DatabaseSettings(url=options.url)) as database:
        for _ in range(options.jobs):
            job = new_job("tenant0")
            before = time.monotonic()
            async with database.transaction() as connection:
                await enqueue(connection, [job])
            instants.append((before, time.monotonic()))
            await asyncio.sleep(options.gap)
    _say(instants=instants)


async def work(options: argparse.Namespace) -> None:
    """Work until told to stop. `tally` gets the instant of each settled run, or of each started handler."""
    tally = Tally(Path(options.tally))
    if options.starts:
        Starts.tally = tally

    def observe(fact: Fact) -> None:
        if fact.name is FactName.RUN_ENDED:
            if Starts.tally is None:
                tally.mark()
        elif fact.name is FactName.WORKER_STARTED:
            _say(ready=True)
        elif fact.name in COMPLAINTS:
            print(fact.name, fact.detail, file=sys.stderr)

    settings = DatabaseSettings(url=options.url, pool_size_max=options.connections)
    async with Database(settings, name="tenure worker") as database:
        worker_options = WorkerOptions(queues=(QUEUE,), slots=options.slots, factory=FACTORY, shutdown_seconds=5.0)
        own = Kinds([kind for name, kind in kinds().items() if name in options.kinds.split(",")])
        worker = Worker(database, own, worker_options, observe)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("setup", "fill", "single", "work"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--tenants", type=int, default=1)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--tally")
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--kinds", default="noop")
    parser.add_argument("--profile", help="write samples of the main thread's stack here")
    return parser.parse_args()


def main() -> None:
    options = parse()
    command = {"setup": setup, "fill": fill, "single": single, "work": work}[options.command]
    if options.profile:
        from stacks import sampled

        with sampled(Path(options.profile)):
            asyncio.run(command(options))
        return
    asyncio.run(command(options))


if __name__ == "__main__":
    main()
