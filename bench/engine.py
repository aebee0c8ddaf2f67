"""`make bench-engine`: how fast no-op jobs go through, for Tenure and its peers, on one server in one run.

The systems take turns within each round, so that a machine that slows down slows all of them down. Every drain has a
new database and new processes, and is timed from 5 % to the last job.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from reports import bar_chart, machine, median, mode, percentile, rates, write
from servers import SETTINGS, BenchServer, bench_server, hold_snapshot, vacuum
from systems import PGQUEUER, PROCRASTINATE, TENURE, System, at_work, new_database, prepare_peer, run_side

SPEEDUP_TARGET = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything; `trial_jobs` and `held_jobs` of 0 leave that part out."""

    jobs: int
    rounds: int
    trial_jobs: int
    latency_jobs: int
    single_jobs: int
    held_jobs: int


SIZES = {
    "quick": Sizes(jobs=3_000, rounds=2, trial_jobs=0, latency_jobs=60, single_jobs=40, held_jobs=0),
    "full": Sizes(jobs=50_000, rounds=5, trial_jobs=20_000, latency_jobs=1_000, single_jobs=2_000, held_jobs=100_000),
}
LATENCY_GAP_SECONDS = 0.05
TENANTS = ("--tenants", "10")
RATES = ("drain_per_s", "drain2_per_s", "enqueue_per_s", "enqueue_many_per_s")


def main() -> None:
    size = SIZES[mode()]
    systems = [TENURE, PGQUEUER, PROCRASTINATE]
    for system in systems:
        if system.is_peer:
            prepare_peer(system)
    with bench_server() as server:
        facts = machine(server.version, SETTINGS)
        systems = [best_settings(server, system, size.trial_jobs) for system in systems]
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for number in range(size.rounds):
            for system in systems:
                measure(server, system, size, found[system.name])
                print(f"round {number + 1}: {system.name} {_line(found[system.name])}", flush=True)
        held = {system.name: held_drain(server, system, size.held_jobs) for system in systems if size.held_jobs}
    report({name: dict(values) for name, values in found.items()}, held, facts, systems)


def best_settings(server: BenchServer, system: System, jobs: int) -> System:
    """The fastest of the settings worth trying. Quick mode keeps those that were best before."""
    if not jobs:
        return system
    tried = {}
    for settings in system.trials:
        candidate = system.with_settings(settings)
        tried[settings] = drain(server, candidate, int(jobs * system.jobs_share))
        print(f"trial: {system.name} {' '.join(settings)}: {tried[settings]:,.0f}/s", flush=True)
    return system.with_settings(max(tried, key=lambda settings: tried[settings]))


def measure(server: BenchServer, system: System, size: Sizes, found: dict[str, list[float]]) -> None:
    jobs = int(size.jobs * system.jobs_share)
    found["drain_per_s"].append(drain(server, system, jobs, enqueue_rates=found["enqueue_many_per_s"]))
    found["drain2_per_s"].append(drain(server, system, jobs, processes=2))
    if mode() == "full" or not found["pickup_ms"]:
        single_rate(server, system, size, found)
        pickup(server, system, size, found)


def drain(
    server: BenchServer,
    system: System,
    jobs: int,
    *,
    processes: int = 1,
    enqueue_rates: list[float] | None = None,
) -> float:
    """Jobs per second of a full queue being emptied."""
    url = new_database(server, system)
    filled = run_side(system, "fill", url, "--jobs", str(jobs), *(() if system.is_peer else TENANTS))
    if enqueue_rates is not None:
        enqueue_rates.append(jobs / filled["seconds"])
    vacuum(url)
    server.checkpoint()
    with at_work(system, url, capacity=jobs, processes=processes) as workers:
        workers.wait_done(jobs)
        instants = workers.instants()
    server.drop(url)
    return rates(instants, 1)[0]


def single_rate(server: BenchServer, system: System, size: Sizes, found: dict[str, list[float]]) -> None:
    """Enqueued one job a transaction, one after the other."""
    url = new_database(server, system)
    instants = run_side(system, "single", url, "--jobs", str(size.single_jobs))["instants"]
    found["enqueue_per_s"].append(len(instants) / (instants[-1][1] - instants[0][0]))
    server.drop(url)


def pickup(server: BenchServer, system: System, size: Sizes, found: dict[str, list[float]]) -> None:
    """From the commit, as the client sees it, to the handler's first line, on an idle worker."""
    url = new_database(server, system)
    jobs = max(size.latency_jobs // size.rounds, 20)
    options = () if system.is_peer else ("--starts",)
    with at_work(system, url, capacity=jobs, options=options) as workers:
        gap = ("--gap", str(LATENCY_GAP_SECONDS))
        instants = run_side(system, "single", url, "--jobs", str(jobs), *gap)["instants"]
        workers.wait_done(jobs)
        started = workers.instants()
    server.drop(url)
    warm = jobs // 10
    pairs = list(zip(instants, started, strict=True))[warm:]
    found["pickup_ms"] += [(start - committed) * 1e3 for (_, committed), start in pairs]
    found["enqueue_to_start_ms"] += [(start - before) * 1e3 for (before, _), start in pairs]


def held_drain(server: BenchServer, system: System, jobs: int) -> list[float]:
    """Rates of ten equal parts of a drain, while a stranger keeps an old snapshot open from before it to its end."""
    jobs = int(jobs * system.jobs_share)
    url = new_database(server, system)
    run_side(system, "fill", url, "--jobs", str(jobs), *(() if system.is_peer else TENANTS))
    vacuum(url)
    server.checkpoint()
    with hold_snapshot(url), at_work(system, url, capacity=jobs) as workers:
        workers.wait_done(jobs)
        windows = rates(workers.instants(), 10)
    server.drop(url)
    print(f"held snapshot: {system.name} {' '.join(f'{rate:,.0f}' for rate in windows)}", flush=True)
    return windows


def report(
    found: dict[str, dict[str, list[float]]], held: dict[str, list[float]], facts: dict[str, Any], systems: list[System]
) -> None:
    middle = {
        name: {key: median(values) for key, values in of.items() if key.endswith("_per_s")}
        | {f"pickup_p{p}_ms": percentile(of["pickup_ms"], p / 100) for p in (50, 99)}
        | {f"enqueue_to_start_p{p}_ms": percentile(of["enqueue_to_start_ms"], p / 100) for p in (50, 99)}
        for name, of in found.items()
    }
    own, peer = middle["tenure"], middle["pgqueuer"]
    speedups = _ratios(found["tenure"]["drain_per_s"], found["pgqueuer"]["drain_per_s"])
    figures = {
        **{key: round(value, 3) for key, value in own.items()},
        "pgqueuer_drain_per_s": round(peer["drain_per_s"], 3),
        "procrastinate_drain_per_s": round(middle["procrastinate"]["drain_per_s"], 3),
        "drain_vs_pgqueuer": round(median(speedups), 3),
        "drain_vs_pgqueuer_rounds": [round(value, 3) for value in speedups],
        "systems": middle,
        "held_snapshot_rates": held,
        "settings": {system.name: " ".join(system.work) for system in systems},
        "rounds": found,
        "machine": facts,
    }
    rows = [*target_rows(own, median(speedups)), *system_rows(middle, held, systems)]
    write("engine", figures, rows, chart(middle))


Row = tuple[str, str, str, bool | None]


def target_rows(own: dict[str, float], speedup: float) -> list[Row]:
    return [
        (
            "drain, one process, against PgQueuer",
            f"{speedup:.2f}x",
            f">= {SPEEDUP_TARGET}x",
            speedup >= SPEEDUP_TARGET,
        ),
        ("pickup, idle worker, p50", f"{own['pickup_p50_ms']:.1f} ms", "<= 5 ms", own["pickup_p50_ms"] <= 5),
        ("pickup, idle worker, p99", f"{own['pickup_p99_ms']:.1f} ms", "<= 25 ms", own["pickup_p99_ms"] <= 25),
    ]


def system_rows(middle: dict[str, dict[str, float]], held: dict[str, list[float]], systems: list[System]) -> list[Row]:
    rows: list[Row] = []
    for system in systems:
        of, name = middle[system.name], f"{system.name} ({' '.join(system.work)})"
        rates_ = ", ".join(f"{of[key]:,.0f}" for key in RATES)
        rows.append((f"{name}: drain with 1 and 2 processes, enqueue single and bulk, per s", rates_, "", None))
        rows.append((f"{name}: pickup p50, p99", f"{of['pickup_p50_ms']:.1f}, {of['pickup_p99_ms']:.1f} ms", "", None))
        if system.name in held:
            ratio = held[system.name][-1] / held[system.name][0]
            rows.append((f"{name}: held snapshot, last tenth against first", f"{ratio:.0%}", "", None))
    return rows


def chart(middle: dict[str, dict[str, float]]) -> str:
    titles = {
        "drain_per_s": "No-op jobs drained per second, one worker process",
        "drain2_per_s": "Two worker processes",
        "enqueue_many_per_s": "Enqueued per second, a thousand at a time",
        "enqueue_per_s": "Enqueued per second, one a transaction",
        "pickup_p50_ms": "Pickup by an idle worker, median, ms (less is better)",
    }
    groups = [
        (title, [(name, of[key], f"{of[key]:,.{1 if key.endswith('_ms') else 0}f}") for name, of in middle.items()])
        for key, title in titles.items()
    ]
    return bar_chart("Job engines side by side", groups)


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Round by round: both ran within the same minute."""
    return [own / other for own, other in zip(ours, theirs, strict=True)]


def _line(of: dict[str, list[float]]) -> str:
    return ", ".join(f"{key} {values[-1]:,.0f}" for key, values in of.items() if key.endswith("_per_s"))


if __name__ == "__main__":
    main()
