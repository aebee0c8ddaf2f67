"""Small tenants beside a flood, and what looking after them costs the whole.

One tenant has thousands of jobs of 5 ms; while they run, ten at a time, twenty others come one after the other with
five jobs each. Then the same jobs at the same moments, all of one tenant: that is first in, first out. A wait goes
from the instant the row was written to the handler's first line.
"""

import asyncio
from dataclasses import dataclass, field

from backlog import add_jobs
from servers import BenchServer, query, vacuum
from sides.tenure_side import new_job
from systems import TENURE, at_work, new_database
from tenure.engine.enqueue import enqueue
from tenure.store.database import DatabaseSettings, connect

SLOTS = 10
SMALL_TENANTS = 20
SMALL_JOBS = 5
ARGS = '{"seconds": 0.005}'
WAITS = """
    SELECT ((result ->> 'started')::double precision - extract(epoch FROM queued_at)) * 1000
      FROM tenure.runs WHERE tenant_id LIKE 'late%' AND outcome = 'succeeded'"""


@dataclass(slots=True)
class Flood:
    """Waits of the small tenants in ms, and jobs per second of the whole."""

    waits_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    fifo_rates: list[float] = field(default_factory=list)


def measure_flood(server: BenchServer, *, jobs: int, rounds: int) -> Flood:
    flood = Flood()
    for _ in range(rounds):
        rate, waits = _one(server, jobs, fair=True)
        flood.rates.append(rate)
        flood.waits_ms += waits
        flood.fifo_rates.append(_one(server, jobs, fair=False)[0])
    return flood


def _one(server: BenchServer, jobs: int, *, fair: bool) -> tuple[float, list[float]]:
    url = new_database(server, TENURE)
    add_jobs(url, "flood", tenants=1, each=jobs, kind="sleep", args=ARGS)
    vacuum(url)
    server.checkpoint()
    total = jobs + SMALL_TENANTS * SMALL_JOBS
    system = TENURE.with_settings(("--slots", str(SLOTS), "--kinds", "sleep"))
    with at_work(system, url, capacity=total) as workers:
        workers.wait_done(jobs // 10)
        asyncio.run(_arrive(url, fair=fair, gap=jobs / 2_000 / SMALL_TENANTS / 2))
        early = workers.done() < jobs
        workers.wait_done(total)
        instants = workers.instants()
    waits = [float(row[0]) for row in query(url, WAITS)] if fair else []
    server.drop(url)
    assert early, "the flood was over before the last small tenant came"
    begin = total // 20
    return (total - begin) / (instants[-1] - instants[begin]), waits


async def _arrive(url: str, *, fair: bool, gap: float) -> None:
    connection = await connect(DatabaseSettings(url=url))
    try:
        for number in range(SMALL_TENANTS):
            tenant = f"late{number}" if fair else "flood1"
            async with connection.transaction():
                await enqueue(connection, [new_job(tenant, "sleep", ARGS.encode()) for _ in range(SMALL_JOBS)])
            await asyncio.sleep(gap)
    finally:
        await connection.close()
