"""Draws the jobs of a load. They depend on the load and its seed alone, so every policy gets the very same ones."""

import heapq
import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.simulate.load import ArrivalKind, Arrivals, Group, Load, Work

_Deaths = tuple[float, ...]
_Drawn = tuple[float, int, float, _Deaths]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Jobs in order of arrival, in columns: millions of them must fit into memory."""

    arrived_at: "array[float]"
    lane: "array[int]"
    seconds: "array[float]"
    """What a run takes that is let finish."""
    deaths: dict[int, _Deaths]
    """Job -> how far each of its attempts that die gets, as a part of the whole run."""

    def __len__(self) -> int:
        return len(self.lane)


def draw_jobs(load: Load) -> Jobs:
    """All jobs of a load, up to its duration."""
    jobs = Jobs(arrived_at=array("d"), lane=array("i"), seconds=array("d"), deaths={})
    for arrived_at, lane, seconds, deaths in heapq.merge(*_streams(load)):
        if deaths:
            jobs.deaths[len(jobs)] = deaths
        jobs.arrived_at.append(arrived_at)
        jobs.lane.append(lane)
        jobs.seconds.append(seconds)
    return jobs


def _streams(load: Load) -> Iterator[Iterator[_Drawn]]:
    first_lane = 0
    for group in load.groups:
        for index, work in enumerate(group.work):
            chance = random.Random(f"{load.seed}/{group.name}/{index}")  # noqa: S311  nothing secret
            yield _stream(group, work, first_lane, chance)
        first_lane += group.count


def _stream(group: Group, work: Work, first_lane: int, chance: random.Random) -> Iterator[_Drawn]:
    for arrived_at, tenant in _arrivals(work.arrivals, group.count, chance):
        deaths = _deaths(group, chance) if group.crash_rate else ()
        yield arrived_at, first_lane + tenant, max(work.durations.draw(chance), 0.001), deaths


def _arrivals(arrivals: Arrivals, tenants: int, chance: random.Random) -> Iterator[tuple[float, int]]:
    """(time, tenant of the group), by time."""
    match arrivals.kind:
        case ArrivalKind.BURST:
            return ((arrivals.from_seconds, tenant) for tenant in range(tenants) for _ in range(arrivals.jobs))
        case ArrivalKind.STEADY:
            return _steady(arrivals, tenants)
        case ArrivalKind.POISSON:
            return _poisson(arrivals, tenants, chance)


def _steady(arrivals: Arrivals, tenants: int) -> Iterator[tuple[float, int]]:
    turn = 0
    while (at := arrivals.from_seconds + arrivals.every_seconds * (turn / tenants)) < arrivals.to_seconds:
        yield at, turn % tenants
        turn += 1


def _poisson(arrivals: Arrivals, tenants: int, chance: random.Random) -> Iterator[tuple[float, int]]:
    """Many Poisson streams together are one, whose every arrival belongs to any of them alike."""
    per_second = arrivals.rate_per_hour * tenants / 3_600
    if per_second == 0:
        return
    at = arrivals.from_seconds + chance.expovariate(per_second)
    while at < arrivals.to_seconds:
        yield at, int(chance.random() * tenants)
        at += chance.expovariate(per_second)


def _deaths(group: Group, chance: random.Random) -> _Deaths:
    deaths: list[float] = []
    while len(deaths) < group.max_crashes and chance.random() < group.crash_rate:
        deaths.append(chance.random())
    return tuple(deaths)
