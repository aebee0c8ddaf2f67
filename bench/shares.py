"""Who gets the workers' time: weights 1, 2 and 4, durations ten to one, and one run in twenty kills its process.

Ten worker processes of one slot, then one alone: each claim takes one job, which is where memoryless schemes fail.
Worker-seconds are taken from the run records, and from the leases of what still runs, within a window that begins
when all workers are up.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from backlog import add_jobs, add_lanes
from servers import BenchServer, query, vacuum
from systems import TENURE, Workers, new_database
from tenure.core.fairness import jain_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A tenant; `long`: its jobs take ten times as long as the others'."""

    name: str
    weight: float
    long: bool


CONTENDERS = (
    Contender(name="light", weight=1.0, long=True),
    Contender(name="middle", weight=2.0, long=False),
    Contender(name="heavy", weight=4.0, long=True),
)
CRASH_SHARE = 0.05
SETTLING_SECONDS = 2.0
WORKER_SECONDS = """
    WITH worked AS (
        SELECT tenant_id, claimed_at, finished_at FROM tenure.runs
        UNION ALL SELECT tenant_id, claimed_at, clock_timestamp() FROM tenure.jobs WHERE state = 'running'
    )
    SELECT tenant_id, sum(greatest(extract(epoch FROM least(finished_at, %(until)s) - greatest(claimed_at, %(since)s)),
                                   0))::double precision
      FROM worked GROUP BY tenant_id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Jain's index of worker-seconds per weight, and what it came from."""

    jain: float
    seconds: dict[str, float]
    crashes: int
    runs: int


def measure_shares(server: BenchServer, *, workers: int, seconds: float, long_seconds: float) -> Shares:
    url = new_database(server, TENURE)
    for contender in CONTENDERS:
        duration = long_seconds if contender.long else long_seconds / 10
        args = json.dumps({"seconds": duration, "crash_share": CRASH_SHARE})
        each = int(workers * (seconds + 60) / duration) + 100
        add_lanes(url, contender.name, tenants=1, weight=contender.weight)
        add_jobs(url, contender.name, tenants=1, each=each, kind="sleep_or_die", args=args)
    vacuum(url)
    system = TENURE.with_settings(("--slots", "1", "--connections", "3", "--kinds", "sleep_or_die"))
    team = Workers()
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        try:
            for _ in range(workers):
                team.start(system, url, Path(folder), capacity=1)
            team.wait_ready()
            time.sleep(SETTLING_SECONDS)
            since = _now(url)
            time.sleep(seconds)
            found = dict(query(url, WORKER_SECONDS, {"since": since, "until": _now(url)}))
        finally:
            team.stop()
    crashes, runs = query(url, "SELECT count(*) FILTER (WHERE error_code = 'process_died'), count(*) FROM tenure.runs")[
        0
    ]
    server.drop(url)
    used = {contender.name: found.get(f"{contender.name}1", 0.0) for contender in CONTENDERS}
    jain = jain_index(used[contender.name] / contender.weight for contender in CONTENDERS)
    return Shares(jain=jain, seconds=used, crashes=crashes, runs=runs)


def _now(url: str) -> object:
    return query(url, "SELECT clock_timestamp()")[0][0]
