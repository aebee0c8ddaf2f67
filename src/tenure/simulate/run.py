"""Plays the events of a load against a policy: arrivals, claims, ends, crashes, pauses."""

import heapq
import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from tenure.core.limits import LAPSE_BACKOFF_SECONDS, LAPSE_BACKOFF_SECONDS_MAX
from tenure.core.retry import lapse_wait_seconds
from tenure.simulate.jobs import Jobs
from tenure.simulate.ledger import Ledger, Series
from tenure.simulate.load import Load
from tenure.simulate.policy import BEYOND, WITHIN, News, Policy

WATCH_STEPS = 20_000
"""How many moments pass between two words about the progress."""

Watch = Callable[[float], None]
"""Told the part of all jobs that have ended, 0 to 1, now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Everything that happened. Times are seconds; -1 where it never came to that."""

    load: Load
    jobs: Jobs
    ended_at: float
    started_at: "array[float]"
    """First start of each job."""
    ready_alone: bytearray
    """Jobs that came when their tenant had nothing waiting or running and owed nothing."""
    quarantined: int
    crashes: "array[int]"
    """Attempts of each lane that died."""
    unfinished: int
    ledger: Ledger
    series: Series
    idle_while_waiting: int
    """Moments at which a slot stayed free though work was eligible: the policy must leave none."""


def play(load: Load, jobs: Jobs, policy: Policy, watch: Watch = lambda part: None) -> Played:  # noqa: ARG005
    """Play all of it. With `drain` off, stop when the arrivals do."""
    play = _Play(load, jobs, policy)
    for steps, now in enumerate(play.moments()):
        play.pass_time(now)
        play.step(now)
        if steps % WATCH_STEPS == 0:
            watch(play.ended / max(len(jobs), 1))
    return play.finish()


class _Play:
    def __init__(self, load: Load, jobs: Jobs, policy: Policy) -> None:
        self._load, self._jobs, self._policy = load, jobs, policy
        self._ledger, self._series = Ledger(load), Series(load)
        self._group_of = load.lane_groups
        self._free = load.slots
        self._now = 0.0
        self._arrived = 0
        self._line_first = array("i", [-1]) * load.tenant_count
        self._line_last = array("i", [-1]) * load.tenant_count
        self._line_next = array("i", [-1]) * len(jobs)
        self._ends: list[tuple[float, int, float, float]] = []
        """Heap of (end, job, start, charged seconds)."""
        self._due: list[tuple[float, int]] = []
        """Heap of (time, job): jobs that wait before they are tried again."""
        self._switches = sorted(_switches(load), key=lambda switch: switch[:2], reverse=True)
        self._deaths_met: dict[int, int] = {}
        self._started_at = array("d", [-1.0]) * len(jobs)
        self._ready_alone = bytearray(len(jobs))
        self._crashes = array("i", [0]) * load.tenant_count
        self._quarantined = 0
        self._idle_while_waiting = 0
        self.ended = 0

    def moments(self) -> Iterator[float]:
        """Times at which something happens, in order."""
        last = math.inf if self._load.drain else self._load.duration_seconds
        while True:
            now = min(
                self._jobs.arrived_at[self._arrived] if self._arrived < len(self._jobs) else math.inf,
                self._ends[0][0] if self._ends else math.inf,
                self._due[0][0] if self._due else math.inf,
                self._switches[-1][0] if self._switches else math.inf,
            )
            if now > last or now == math.inf:
                return
            yield now

    def pass_time(self, now: float) -> None:
        end = self._load.duration_seconds
        if self._ledger.open and now > end:
            self._ledger.advance(end)
            self._ledger.close()
        self._ledger.advance(now)
        self._series.pass_time(now)
        self._now = now

    def step(self, now: float) -> None:
        """All that happens at one moment, then one claim: as the store folds what was noted, then claims."""
        news: dict[int, News] = {}
        self._take_ends(now, news)
        self._take_due(now, news)
        came = self._take_arrivals(now, news)
        touched = self._take_switches(now)
        if news:
            self._policy.fold(news)
        self._mark_alone(came)
        touched.update(news)
        if self._free:
            for lane, charged_seconds in self._policy.claim(self._free):
                self._start(lane, charged_seconds, now)
                touched.add(lane)
        for lane in touched:
            self._ledger.note(lane, self._policy.running[lane], self._policy.standing(lane))
        self._check_idle()

    def finish(self) -> Played:
        if self._ledger.open:
            self.pass_time(max(self._now, self._load.duration_seconds))
            self._ledger.close()
        self._series.finish(self._now)
        return Played(
            load=self._load,
            jobs=self._jobs,
            ended_at=self._now,
            started_at=self._started_at,
            ready_alone=self._ready_alone,
            quarantined=self._quarantined,
            crashes=self._crashes,
            unfinished=len(self._jobs) - self.ended,
            ledger=self._ledger,
            series=self._series,
            idle_while_waiting=self._idle_while_waiting,
        )

    def _take_ends(self, now: float, news: dict[int, News]) -> None:
        ends, lanes = self._ends, self._jobs.lane
        while ends and ends[0][0] <= now:
            _, job, started_at, charged_seconds = heapq.heappop(ends)
            lane = lanes[job]
            item = news.get(lane) or news.setdefault(lane, News())
            item.settled += 1
            item.used_seconds += now - started_at
            item.charged_seconds += charged_seconds
            self._free += 1
            self._series.change(self._group_of[lane], -1)
            if job in self._jobs.deaths and self._died(job, now):
                continue
            self.ended += 1

    def _died(self, job: int, now: float) -> bool:
        """Did the attempt that ends now die, with another one to come? The first comes at once, later ones wait."""
        lane, deaths = self._jobs.lane[job], self._jobs.deaths[job]
        met = self._deaths_met.get(job, 0)
        if met == len(deaths):
            return False
        self._crashes[lane] += 1
        self._deaths_met[job] = met + 1
        if met + 1 >= self._load.groups[self._group_of[lane]].max_crashes:
            self._quarantined += 1
            return False
        wait_seconds = lapse_wait_seconds(
            met + 1, base_seconds=LAPSE_BACKOFF_SECONDS, cap_seconds=LAPSE_BACKOFF_SECONDS_MAX
        )
        heapq.heappush(self._due, (now + wait_seconds, job))
        return True

    def _take_due(self, now: float, news: dict[int, News]) -> None:
        while self._due and self._due[0][0] <= now:
            self._line_up(heapq.heappop(self._due)[1], news)

    def _take_arrivals(self, now: float, news: dict[int, News]) -> list[int]:
        """The first new job of every lane that has nothing running or waiting."""
        arrived_at, lanes = self._jobs.arrived_at, self._jobs.lane
        waiting, running = self._policy.waiting, self._policy.running
        came: list[int] = []
        while self._arrived < len(arrived_at) and arrived_at[self._arrived] <= now:
            job = self._arrived
            lane = lanes[job]
            if not waiting[lane] and not running[lane] and lane not in news:
                came.append(job)
            self._line_up(job, news)
            self._arrived += 1
        return came

    def _take_switches(self, now: float) -> set[int]:
        touched: set[int] = set()
        while self._switches and self._switches[-1][0] <= now:
            _, paused, lanes = self._switches.pop()
            for lane in lanes:
                self._policy.set_paused(lane, paused=paused)
            touched.update(lanes)
        return touched

    def _mark_alone(self, came: list[int]) -> None:
        for job in came:
            lane = self._jobs.lane[job]
            self._ready_alone[job] = not self._policy.owes(lane) and not self._policy.paused[lane]

    def _line_up(self, job: int, news: dict[int, News]) -> None:
        lane = self._jobs.lane[job]
        if self._line_first[lane] < 0:
            self._line_first[lane] = job
        else:
            self._line_next[self._line_last[lane]] = job
        self._line_last[lane] = job
        self._line_next[job] = -1
        item = news.get(lane) or news.setdefault(lane, News())
        item.arrived += 1

    def _start(self, lane: int, charged_seconds: float, now: float) -> None:
        job = self._line_first[lane]
        self._line_first[lane] = self._line_next[job]
        if self._started_at[job] < 0:
            self._started_at[job] = now
        seconds = self._jobs.seconds[job]
        if (deaths := self._jobs.deaths.get(job)) and (met := self._deaths_met.get(job, 0)) < len(deaths):
            seconds = max(seconds * deaths[met], 0.001)
        heapq.heappush(self._ends, (now + seconds, job, now, charged_seconds))
        self._free -= 1
        self._series.change(self._group_of[lane], 1)

    def _check_idle(self) -> None:
        """Told by the ledger's own count of how lanes stand, not by the policy that is being looked at."""
        if self._free:
            standings = self._ledger.standings
            if standings[WITHIN] or (standings[BEYOND] and self._free > self._load.headroom):
                self._idle_while_waiting += 1


def _switches(load: Load) -> Iterator[tuple[float, bool, range]]:
    """(time, paused from now on?, lanes) of every end of a pause."""
    ends = accumulate(group.count for group in load.groups)
    for group, end in zip(load.groups, ends, strict=True):
        lanes = range(end - group.count, end)
        for start, stop in group.paused:
            yield start, True, lanes
            yield stop, False, lanes
