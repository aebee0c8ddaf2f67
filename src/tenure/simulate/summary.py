"""What came out of a simulation: waits and shares of each group, and how fair it was. All times are seconds."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.core.fairness import jain_index
from tenure.simulate.ledger import BINS_BEFORE_END
from tenure.simulate.run import Played

CONTENDED_PART_MIN = 0.9
"""Tenants that contended for at least this part of the measured time are compared by Jain's index."""
WORST_COUNT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """From ready to the first start. A job that was not started by the end counts with its age then."""

    p50: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """One group. `used` and `due` are worker-seconds while its tenants contended; see `ledger`."""

    name: str
    tenants: int
    weight: float
    jobs: int
    waiting: int
    """Jobs not started by the end."""
    waits: Waits
    worker_seconds: float
    """Up to the end of arrivals."""
    part: float
    """Of all worker-seconds."""
    used_seconds: float
    due_seconds: float
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A tenant that got less than it was due."""

    tenant: str
    behind_seconds: float
    """Worker-seconds per weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One policy over one load."""

    policy: str
    slots: int
    duration_seconds: float
    ended_at: float
    jobs: int
    unfinished: int
    quarantined: int
    crashes: int
    utilisation: float
    """Part of all slots that was held, up to the end of arrivals."""
    idle_while_waiting: int
    jain: float | None
    """Worker-seconds per weight of the tenants that contended nearly all the time; None for fewer than two."""
    jain_tenants: int
    alone_wait_max: float
    """Longest wait of a job that came when its tenant had nothing else there and owed nothing."""
    alone_wait_bound: float
    """What start tags promise it: one longest run of every contending tenant, spread over the slots, and one more."""
    groups: tuple[GroupSummary, ...]
    behind: tuple[Behind, ...]
    bin_seconds: float
    slots_held: tuple[tuple[float, ...], ...]
    """Mean slots of each group (column) in each bin of time (row)."""
    wait_bin_seconds: float
    waits_by_arrival: tuple[tuple[float | None, ...], ...]
    """95th percentile of the waits of each group (row), by the time of arrival (column)."""


def summarise(played: Played, policy: str) -> Summary:
    load, jobs, ledger = played.load, played.jobs, played.ledger
    waits = _waits(played)
    alike = _contending_throughout(played)
    total_seconds = sum(ledger.worker_seconds)
    longest = max(jobs.seconds, default=0.0)
    return Summary(
        policy=policy,
        slots=load.slots,
        duration_seconds=load.duration_seconds,
        ended_at=played.ended_at,
        jobs=len(jobs),
        unfinished=played.unfinished,
        quarantined=played.quarantined,
        crashes=sum(played.crashes),
        utilisation=total_seconds / (load.slots * load.duration_seconds),
        idle_while_waiting=played.idle_while_waiting,
        jain=jain_index(alike) if len(alike) > 1 else None,
        jain_tenants=len(alike),
        alone_wait_max=max((waits[job] for job, alone in enumerate(played.ready_alone) if alone), default=0.0),
        alone_wait_bound=(ledger.contenders_max / load.slots + 1) * longest,
        groups=tuple(_groups(played, waits, total_seconds)),
        behind=_behind(played),
        bin_seconds=played.series.bin_seconds,
        slots_held=tuple(tuple(row) for row in played.series.slots),
        wait_bin_seconds=load.duration_seconds / BINS_BEFORE_END,
        waits_by_arrival=_waits_by_arrival(played, waits),
    )


def percentile(ordered: Sequence[float], part: float) -> float:
    """Nearest rank of values in order; 0 for none."""
    return ordered[max(round(part * len(ordered) + 0.5) - 1, 0)] if ordered else 0.0


def _waits(played: Played) -> "array[float]":
    ended_at = played.ended_at
    pairs = zip(played.started_at, played.jobs.arrived_at, strict=True)
    return array("d", [(started if started >= 0 else ended_at) - arrived for started, arrived in pairs])


def _groups(played: Played, waits: "array[float]", total_seconds: float) -> Iterator[GroupSummary]:
    ledger, group_of = played.ledger, played.load.lane_groups
    of_group: list[list[float]] = [[] for _ in played.load.groups]
    waiting = [0] * len(of_group)
    for job, lane in enumerate(played.jobs.lane):
        of_group[group_of[lane]].append(waits[job])
        waiting[group_of[lane]] += played.started_at[job] < 0
    first = 0
    for index, group in enumerate(played.load.groups):
        lanes = slice(first, first + group.count)
        first += group.count
        ordered = sorted(of_group[index])
        worker_seconds = sum(ledger.worker_seconds[lanes])
        yield GroupSummary(
            name=group.name,
            tenants=group.count,
            weight=group.weight,
            jobs=len(ordered),
            waiting=waiting[index],
            waits=Waits(
                p50=percentile(ordered, 0.5), p95=percentile(ordered, 0.95), max=ordered[-1] if ordered else 0.0
            ),
            worker_seconds=worker_seconds,
            part=worker_seconds / total_seconds if total_seconds else 0.0,
            used_seconds=sum(ledger.used_seconds[lanes]),
            due_seconds=sum(ledger.due_seconds[lanes]),
            crashes=sum(played.crashes[lanes]),
        )


def _contending_throughout(played: Played) -> list[float]:
    """Worker-seconds per weight of every tenant that contended nearly all the measured time."""
    ledger, load = played.ledger, played.load
    enough = CONTENDED_PART_MIN * load.duration_seconds
    return [
        ledger.worker_seconds[lane] / load.groups[group].weight
        for lane, group in enumerate(load.lane_groups)
        if ledger.contended_seconds[lane] >= enough
    ]


def _behind(played: Played) -> tuple[Behind, ...]:
    ledger, load = played.ledger, played.load
    found = [
        ((due - used) / load.groups[group].weight, lane)
        for lane, (group, used, due) in enumerate(
            zip(load.lane_groups, ledger.used_seconds, ledger.due_seconds, strict=True)
        )
        if due - used > 0.0
    ]
    found.sort(reverse=True)
    return tuple(Behind(tenant=load.tenant_name(lane), behind_seconds=behind) for behind, lane in found[:WORST_COUNT])


def _waits_by_arrival(played: Played, waits: "array[float]") -> tuple[tuple[float | None, ...], ...]:
    load, group_of = played.load, played.load.lane_groups
    bins: list[list[list[float]]] = [[[] for _ in range(BINS_BEFORE_END)] for _ in load.groups]
    for lane, arrived_at, wait in zip(played.jobs.lane, played.jobs.arrived_at, waits, strict=True):
        place = min(int(arrived_at / load.duration_seconds * BINS_BEFORE_END), BINS_BEFORE_END - 1)
        bins[group_of[lane]][place].append(wait)
    return tuple(tuple(percentile(sorted(found), 0.95) if found else None for found in row) for row in bins)
