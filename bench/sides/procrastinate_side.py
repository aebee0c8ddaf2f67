"""Procrastinate, as the bench drives it: its psycopg connector and a concurrency. Runs in its own environment."""

import argparse
import asyncio
import json
import logging
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from procrastinate import App, PsycopgConnector

from tally import Tally

BATCH = 1_000


def new_app(options: argparse.Namespace) -> App:
    # A connection for each concurrent job and one to listen.
    return App(connector=PsycopgConnector(conninfo=options.url, min_size=1, max_size=options.concurrency + 2))


async def setup(options: argparse.Namespace) -> None:
    app = new_app(options)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def fill(options: argparse.Namespace) -> None:
    app = new_app(options)
    noop = app.configure_task("noop")
    async with app.open_async():
        began = time.monotonic()
        for start in range(0, options.jobs, BATCH):
            await noop.batch_defer_async(*[{} for _ in range(min(BATCH, options.jobs - start))])
        _say(seconds=time.monotonic() - began)


async def single(options: argparse.Namespace) -> None:
    app = new_app(options)
    noop = app.configure_task("noop")
    instants = []
    async with app.open_async():
        for _ in range(options.jobs):
            before = time.monotonic()
            await noop.defer_async()
            instants.append((before, time.monotonic()))
            await asyncio.sleep(options.gap)
    _say(instants=instants)


async def work(options: argparse.Namespace) -> None:
    tally = Tally(Path(options.tally))
    app = new_app(options)

    @app.task(name="noop")
    async def noop() -> None:
        tally.mark()

    async with app.open_async():
        _say(ready=True)
        await app.run_worker_async(concurrency=options.concurrency)


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("setup", "fill", "single", "work"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--tally")
    parser.add_argument("--concurrency", type=int, default=1)
    options = parser.parse_args()
    asyncio.run({"setup": setup, "fill": fill, "single": single, "work": work}[options.command](options))


if __name__ == "__main__":
    main()
