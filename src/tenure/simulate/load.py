"""The description of a load: a queue, groups of tenants, and what they ask for. Times are seconds from the start."""

import random
from dataclasses import dataclass
from enum import StrEnum

UNLIMITED = 1_000_000
"""Cap and ceiling of a lane that has none: the default of `tenure.lanes`."""
FIRST_ESTIMATE_SECONDS = 1.0
"""What a tenant's first run is expected to take: the default of `tenure.lanes.estimate_seconds`."""


class ArrivalKind(StrEnum):
    """See `Arrivals`."""

    POISSON = "poisson"
    STEADY = "steady"
    BURST = "burst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When the jobs of each tenant of a group come.

    `poisson`: at random, `rate_per_hour`. `steady`: one every `every_seconds`, the tenants of the group spread evenly.
    Both from `from_seconds` up to `to_seconds`. `burst`: `jobs` at once, at `from_seconds`.
    """

    kind: ArrivalKind
    rate_per_hour: float = 0.0
    every_seconds: float = 0.0
    jobs: int = 0
    from_seconds: float = 0.0
    to_seconds: float = 0.0

    def expected_jobs(self) -> float:
        """Jobs of one tenant."""
        seconds = max(self.to_seconds - self.from_seconds, 0.0)
        match self.kind:
            case ArrivalKind.POISSON:
                return self.rate_per_hour * seconds / 3_600
            case ArrivalKind.STEADY:
                return seconds / self.every_seconds
            case ArrivalKind.BURST:
                return float(self.jobs)


class DurationKind(StrEnum):
    """See `Durations`."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long a run takes when it is let finish, in seconds.

    `constant`: `seconds`. `uniform`: from `low_seconds` to `seconds`. `exponential`: `seconds` is the mean.
    `lognormal`: `seconds` is the median, `sigma` the standard deviation of the logarithm; 1 means that one run in six
    takes more than 2.7 times the median.
    """

    kind: DurationKind
    seconds: float
    low_seconds: float = 0.0
    sigma: float = 0.0

    def draw(self, chance: random.Random) -> float:
        match self.kind:
            case DurationKind.CONSTANT:
                return self.seconds
            case DurationKind.UNIFORM:
                return chance.uniform(self.low_seconds, self.seconds)
            case DurationKind.EXPONENTIAL:
                return chance.expovariate(1 / self.seconds)
            case DurationKind.LOGNORMAL:
                return self.seconds * chance.lognormvariate(0.0, self.sigma)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One stream of jobs of every tenant in a group."""

    arrivals: Arrivals
    durations: Durations


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tenants that are alike.

    `crash_rate`: the chance of one attempt to die on its way; it is tried again from the
    start, until `max_crashes` have died and the job is quarantined. `paused`: spells (from, to) without claims.
    """

    name: str
    count: int = 1
    weight: float = 1.0
    cap: int = UNLIMITED
    ceiling: int = UNLIMITED
    work: tuple[Work, ...]
    crash_rate: float = 0.0
    max_crashes: int
    paused: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Everything a simulation needs.

    Shares are measured up to `duration_seconds`, when arrivals end; with `drain` the
    simulation goes on until all work is done.
    """

    name: str
    description: str = ""
    seed: int = 1
    duration_seconds: float
    drain: bool = True
    slots: int
    headroom: int = 0
    first_estimate_seconds: float = FIRST_ESTIMATE_SECONDS
    groups: tuple[Group, ...]

    @property
    def tenant_count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def lane_groups(self) -> list[int]:
        """Index of the group of every lane: lanes are numbered through, group by group."""
        return [index for index, group in enumerate(self.groups) for _ in range(group.count)]

    def tenant_name(self, lane: int) -> str:
        for group in self.groups:
            if lane < group.count:
                return group.name if group.count == 1 else f"{group.name}-{lane + 1}"
            lane -= group.count
        raise IndexError(lane)
