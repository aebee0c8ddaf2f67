"""What one claim costs per job, as queues and tenants grow.

The product's own `jobs.claim` is timed on one connection, a hundred jobs at a time. After each claim the jobs are
settled and as many put back for the same tenants, so the backlog stays what it is. The situations take turns, claim
by claim, so that whatever the machine does happens to all of them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import uuid4

from backlog import add_jobs, add_lanes
from reports import percentile
from servers import BenchServer, vacuum
from sides.tenure_side import QUEUE, new_job
from systems import TENURE, new_database
from tenure.core.ids import WorkerId
from tenure.core.job import Claim
from tenure.core.retry import RetryPolicy
from tenure.core.run import Succeeded
from tenure.core.settlement import decide
from tenure.engine.enqueue import enqueue
from tenure.store import jobs
from tenure.store.database import Connection, DatabaseSettings, connect

COUNT = 100
WARM_UP = 6
TENANTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How far the situations go."""

    backlog: int
    tenants: int
    idle: int
    blocked: int
    claims: int


FULL = Scale(backlog=2_000_000, tenants=10_000, idle=100_000, blocked=10_000, claims=400)
QUICK = Scale(backlog=20_000, tenants=1_000, idle=10_000, blocked=1_000, claims=20)


@dataclass(slots=True, kw_only=True)
class Situation:
    """A database in a certain state, and what claims in it cost."""

    connection: Connection
    worker_id: WorkerId = field(default_factory=lambda: WorkerId(uuid4()))
    ms_per_job: list[float] = field(default_factory=list)


def situations(scale: Scale) -> dict[str, Callable[[str], None]]:
    def small(url: str) -> None:
        add_jobs(url, "small", tenants=TENANTS, each=5)

    def deep(url: str) -> None:
        add_jobs(url, "small", tenants=TENANTS, each=scale.backlog // TENANTS)

    def one_huge(url: str, tenants: int = TENANTS) -> None:
        add_jobs(url, "huge", tenants=1, each=scale.backlog)
        add_jobs(url, "small", tenants=tenants - 1, each=5)

    def idle(url: str) -> None:
        add_lanes(url, "idle", tenants=scale.idle)
        small(url)

    def blocked(url: str) -> None:
        add_lanes(url, "capped", tenants=scale.blocked // 2, cap=0)
        add_lanes(url, "paused", tenants=scale.blocked // 2, paused=True)
        add_jobs(url, "capped", tenants=scale.blocked // 2, each=5)
        add_jobs(url, "paused", tenants=scale.blocked // 2, each=5)
        small(url)

    return {
        "1,000 queued, 200 tenants": small,
        f"{scale.backlog:,} queued, 200 tenants": deep,
        f"one tenant with {scale.backlog:,}, 199 with 5": one_huge,
        f"one tenant with {scale.backlog:,}, {scale.tenants - 1:,} with 5": lambda url: one_huge(url, scale.tenants),
        f"1,000 queued, 200 tenants, {scale.idle:,} idle": idle,
        f"1,000 queued, 200 tenants, {scale.blocked:,} capped or paused ahead": blocked,
    }


RATIOS = {"backlog": (1, 0), "tenants": (3, 2), "idle": (4, 0), "blocked": (5, 0)}
"""Which situation is compared with which, by their places."""


def claim_costs(server: BenchServer, scale: Scale) -> tuple[dict[str, float], dict[str, float]]:
    """p95 milliseconds per claimed job of each situation, and the ratios that have targets."""
    urls = {}
    for name, prepare in situations(scale).items():
        url = urls[name] = new_database(server, TENURE)
        prepare(url)
        vacuum(url)
        print(f"claims: prepared: {name}", flush=True)
    server.checkpoint()
    measured = asyncio.run(_measure(urls, scale.claims))
    for url in urls.values():
        server.drop(url)
    p95 = {name: percentile(situation.ms_per_job, 0.95) for name, situation in measured.items()}
    order = list(p95.values())
    return p95, {name: order[large] / order[small] for name, (large, small) in RATIOS.items()}


async def _measure(urls: dict[str, str], claims: int) -> dict[str, Situation]:
    async with AsyncExitStack() as stack:
        found = {}
        for name, url in urls.items():
            connection = await connect(DatabaseSettings(url=url))
            stack.push_async_callback(connection.close)
            found[name] = Situation(connection=connection)
        for number in range(WARM_UP + claims):
            for situation in found.values():
                cost = await _claim_and_put_back(situation)
                if number >= WARM_UP:
                    situation.ms_per_job.append(cost)
    return found


async def _claim_and_put_back(situation: Situation) -> float:
    connection = situation.connection
    request = jobs.ClaimRequest(queue=QUEUE, worker_id=situation.worker_id, count=COUNT, kinds=("noop",))
    began = time.perf_counter()
    claims = await jobs.claim(connection, request)
    seconds = time.perf_counter() - began
    assert len(claims) == COUNT, f"{len(claims)} of {COUNT} jobs were claimed"
    async with connection.transaction():
        ends = [decide(claim, Succeeded(), RetryPolicy(), chance=0.5) for claim in claims]
        assert len(await jobs.settle(connection, ends, host="bench")) == COUNT
        await enqueue(connection, _as_many(claims))
    return seconds * 1e3 / len(claims)


def _as_many(claims: list[Claim]) -> list:
    counts = Counter(claim.tenant_id for claim in claims)
    return [new_job(tenant_id) for tenant_id, count in counts.items() for _ in range(count)]
