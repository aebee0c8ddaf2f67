"""`make bench-fairness`: whether everybody gets their share, and whether that stays cheap."""

from typing import Any

from claims import FULL, QUICK, claim_costs
from engine import held_drain
from reports import bar_chart, machine, median, mode, percentile, write
from servers import SETTINGS, bench_server
from shares import CONTENDERS, Shares, measure_shares
from starvation import Flood, measure_flood
from systems import TENURE

HELD_SETTINGS = ("--slots", "100")
"""Many batches in each tenth of the drain: a batch is written at one instant."""


def main() -> None:
    full = mode() == "full"
    with bench_server() as server:
        facts = machine(server.version, SETTINGS)
        print("claims ...", flush=True)
        costs, ratios = claim_costs(server, FULL if full else QUICK)
        print(f"claims: {ratios}\nflood ...", flush=True)
        flood = measure_flood(server, jobs=20_000 if full else 3_000, rounds=3 if full else 1)
        print("shares, ten workers ...", flush=True)
        seconds, long_seconds = (60.0, 1.0) if full else (8.0, 0.2)
        ten = measure_shares(server, workers=10, seconds=seconds, long_seconds=long_seconds)
        print("shares, one worker ...", flush=True)
        one = measure_shares(server, workers=1, seconds=seconds, long_seconds=long_seconds)
        print("held snapshot ...", flush=True)
        held = held_drain(server, TENURE.with_settings(HELD_SETTINGS), 100_000 if full else 8_000)
    report(ten, one, flood, (costs, ratios), held, facts)


def report(
    ten: Shares,
    one: Shares,
    flood: Flood,
    claims: tuple[dict[str, float], dict[str, float]],
    held: list[float],
    facts: dict[str, Any],
) -> None:
    costs, ratios = claims
    pairs = zip(flood.rates, flood.fifo_rates, strict=True)
    figures = {
        "jain": round(ten.jain, 5),
        "jain_one_worker": round(one.jain, 5),
        "small_p95_ms": round(percentile(flood.waits_ms, 0.95), 2),
        "small_max_ms": round(max(flood.waits_ms), 2),
        "throughput_vs_fifo": round(median([fair / fifo for fair, fifo in pairs]), 4),
        "claim_p95_ratio": round(max(ratios.values()), 3),
        "claim_p95_ratios": {name: round(value, 3) for name, value in ratios.items()},
        "claim_p95_ms_per_job": {name: round(value, 4) for name, value in costs.items()},
        "held_last_over_first": round(held[-1] / held[0], 3),
        "held_rates": [round(rate) for rate in held],
        "worker_seconds": {"ten": ten.seconds, "one": one.seconds},
        "crashes": {"ten": [ten.crashes, ten.runs], "one": [one.crashes, one.runs]},
        "flood_per_s": {"fair": flood.rates, "fifo": flood.fifo_rates},
        "machine": facts,
    }
    write("fairness", figures, rows(figures), chart(ten, one, costs, held))


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, bool | None]]:
    small = f"{found['small_p95_ms']:.0f} ms, {found['small_max_ms']:.0f} ms"
    ratio = found["claim_p95_ratios"]
    words = {
        "backlog": "claim p95 per job, large backlog against 1,000 jobs",
        "tenants": "claim p95 per job, many backlogged tenants against 200",
        "idle": "claim p95 per job, with many idle tenants against none",
        "blocked": "claim p95 per job, many capped or paused tenants at the head against none",
    }
    return [
        ("Jain, ten workers", f"{found['jain']:.4f}", ">= 0.99", found["jain"] >= 0.99),
        ("Jain, one worker", f"{found['jain_one_worker']:.4f}", ">= 0.99", found["jain_one_worker"] >= 0.99),
        (
            "small tenants' wait beside a flood, p95 and longest",
            small,
            "<= 40 ms, <= 100 ms",
            found["small_p95_ms"] <= 40 and found["small_max_ms"] <= 100,
        ),
        (
            "throughput against first in, first out",
            f"{found['throughput_vs_fifo']:.0%}",
            ">= 90 %",
            found["throughput_vs_fifo"] >= 0.9,
        ),
        *((sentence, f"{ratio[name]:.2f}x", "<= 1.5x", ratio[name] <= 1.5) for name, sentence in words.items()),
        (
            "held snapshot: last tenth of the drain against the first",
            f"{found['held_last_over_first']:.0%}",
            ">= 70 %",
            found["held_last_over_first"] >= 0.7,
        ),
    ]


def chart(ten: Shares, one: Shares, costs: dict[str, float], held: list[float]) -> str:
    def shares(found: Shares) -> list[tuple[str, float, str]]:
        values = [(contender.name, found.seconds[contender.name] / contender.weight) for contender in CONTENDERS]
        return [(name, value, f"{value:.1f} s") for name, value in values]

    return bar_chart(
        "Fair, and cheap to keep fair",
        [
            (f"Worker-seconds per weight, ten workers, {ten.crashes} of {ten.runs} runs crashed", shares(ten)),
            (f"Worker-seconds per weight, one worker, {one.crashes} of {one.runs} runs crashed", shares(one)),
            *((f"Claim: {name}, p95 per job", [("", value, f"{value:.3f} ms")]) for name, value in costs.items()),
            (
                "Jobs per second in ten parts of a drain under a held snapshot",
                [(f"part {number}", rate, f"{rate:,.0f}") for number, rate in enumerate(held, 1)],
            ),
        ],
    )


if __name__ == "__main__":
    main()
