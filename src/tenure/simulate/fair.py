"""The policy of `core.fairness`, kept up to date event by event, in O(log lanes) per decision.

It follows the statements of the store, rule by rule, and a test plays both: `fold` is `lanes/fold.sql`, `claim` is
`jobs/claim.sql` with `queues/settle_floor.sql`, `set_paused` is `lanes/tune.sql`. Giving slots out one by one is the
same as giving them out together, since the second start tag of a lane is where the charge for the first one puts its
virtual time. Equal tags go by number of the lane, where the store takes the tenant's id.
"""

import heapq
import math
from collections.abc import Mapping

from tenure.simulate.load import Load
from tenure.simulate.policy import BEYOND, OUT, WITHIN, News, Standing

ESTIMATE_KEPT = 0.8
"""Part of the estimate that one more run leaves as it was: `lanes/fold.sql`."""
ESTIMATE_SECONDS_MIN = 0.001
ESTIMATE_SECONDS_MAX = 3_600.0
FOLDED_RUNS_MAX = 100


def moved_estimate(estimate_seconds: float, *, mean_seconds: float, runs: int) -> float:
    """The estimate after a number of runs that took `mean_seconds` on average."""
    part = 1 - ESTIMATE_KEPT ** min(runs, FOLDED_RUNS_MAX)
    moved = estimate_seconds + (mean_seconds - estimate_seconds) * part
    return min(max(moved, ESTIMATE_SECONDS_MIN), ESTIMATE_SECONDS_MAX)


class FairShare:
    """All lanes of one queue, in columns.

    A lane is found through two heaps of (virtual time, lane): below its cap, or at it. Entries that no longer say where
    a lane stands are dropped when they come up.
    """

    def __init__(self, load: Load) -> None:
        count = load.tenant_count
        lane_groups = [load.groups[index] for index in load.lane_groups]
        self.weight = [group.weight for group in lane_groups]
        self.cap = [group.cap for group in lane_groups]
        self.ceiling = [group.ceiling for group in lane_groups]
        self.virtual_time = [0.0] * count
        self.estimate_seconds = [load.first_estimate_seconds] * count
        self.running = [0] * count
        self.waiting = [0] * count
        self.paused = bytearray(count)
        self.floor = 0.0
        self._waking_at = 0.0
        self._headroom = load.headroom
        self._opened = bytearray(count)
        self._backlogged = bytearray(count)
        """As the store marks it: a lane is found to be empty only when its turn comes."""
        self._placed_in = bytearray(count)
        self._placed_at = [0.0] * count
        self._heaps: tuple[list[tuple[float, int]], ...] = ([], [], [])
        """By standing; the one for lanes that stand out stays empty."""

    def fold(self, news: Mapping[int, News]) -> None:
        """Take in what happened to lanes: `lanes/fold.sql`."""
        self._waking_at = self._waking_floor(news)
        for lane, item in news.items():
            self._correct(lane, item)
            if item.settled:
                self.estimate_seconds[lane] = moved_estimate(
                    self.estimate_seconds[lane], mean_seconds=item.used_seconds / item.settled, runs=item.settled
                )
                self.running[lane] -= item.settled
            if item.arrived:
                self.waiting[lane] += item.arrived
                self._backlogged[lane] = True
            self._place(lane)

    def set_paused(self, lane: int, *, paused: bool) -> None:
        """A lane that had work and could not be served has saved nothing up."""
        if self._backlogged[lane] and self._stands(lane) != WITHIN:
            self.virtual_time[lane] = max(self.virtual_time[lane], self._waking_floor({}))
        self.paused[lane] = paused
        self._place(lane)

    def claim(self, free: int) -> list[tuple[int, float]]:
        """Slots go to lanes below their cap, smallest start tag first; what is left, but for the headroom, is lent."""
        claimed: list[tuple[int, float]] = []
        lendable = free - self._headroom
        served = -math.inf
        while len(claimed) < free:
            lane = self._first(WITHIN)
            if lane is None and len(claimed) < lendable:
                lane = self._first(BEYOND)
            if lane is None:
                break
            if self.waiting[lane]:
                served = max(served, self.virtual_time[lane])
                claimed.append((lane, self._charge(lane)))
            else:
                self._backlogged[lane] = False
            self._place(lane)
        self._settle_floor(served)
        return claimed

    def standing(self, lane: int) -> Standing:
        return self._stands(lane) if self.waiting[lane] else OUT

    def owes(self, lane: int) -> bool:
        return self.virtual_time[lane] > self._waking_at

    def _correct(self, lane: int, item: News) -> None:
        """What runs really took replaces what their claims charged.

        A new lane starts where waking lanes do, and one that was idle or full gains nothing by the correction.
        """
        if not self._opened[lane]:
            self._opened[lane] = True
            self.virtual_time[lane] = self._waking_at
            return
        corrected = self.virtual_time[lane] + (item.used_seconds - item.charged_seconds) / self.weight[lane]
        contends = self._backlogged[lane] and self.running[lane] < min(self.cap[lane], self.ceiling[lane])
        self.virtual_time[lane] = corrected if contends else max(corrected, self._waking_at)

    def _waking_floor(self, news: Mapping[int, News]) -> float:
        """Where a waking lane starts: at what the lane whose turn is next has used, without runs under way."""
        lowest = math.inf
        for lane, item in news.items():
            if self._backlogged[lane] and self._stands(lane) == WITHIN:
                running_seconds = (self.running[lane] - item.settled) * self.estimate_seconds[lane]
                seconds = item.used_seconds - item.charged_seconds - running_seconds
                lowest = min(lowest, self.virtual_time[lane] + seconds / self.weight[lane])
            self._placed_in[lane] = OUT  # its entry is void until it is placed again, after the correction
        turn = self._first(WITHIN)
        if turn is not None:
            running_seconds = self.running[turn] * self.estimate_seconds[turn]
            lowest = min(lowest, self.virtual_time[turn] - running_seconds / self.weight[turn])
        return self.floor if lowest == math.inf else lowest

    def _charge(self, lane: int) -> float:
        estimate_seconds = self.estimate_seconds[lane]
        self.virtual_time[lane] += estimate_seconds / self.weight[lane]
        self.waiting[lane] -= 1
        self.running[lane] += 1
        return estimate_seconds

    def _settle_floor(self, served: float) -> None:
        """The floor is the smallest virtual time of a lane whose turn may be next; with none, what was just served."""
        lane = self._first(WITHIN)
        if lane is None:
            lane = self._first(BEYOND)
        self.floor = max(self.floor, served) if lane is None else self.virtual_time[lane]

    def _stands(self, lane: int) -> Standing:
        running = self.running[lane]
        if self.paused[lane] or running >= self.ceiling[lane]:
            return OUT
        return WITHIN if running < self.cap[lane] else BEYOND

    def _place(self, lane: int) -> None:
        """Make the lane findable where it stands now; an entry from before is thereby void."""
        standing = self._stands(lane) if self._backlogged[lane] else OUT
        at = self.virtual_time[lane]
        if standing == self._placed_in[lane] and at == self._placed_at[lane]:
            return
        self._placed_in[lane] = standing
        self._placed_at[lane] = at
        if standing != OUT:
            heapq.heappush(self._heaps[standing], (at, lane))

    def _first(self, standing: Standing) -> int | None:
        heap = self._heaps[standing]
        while heap:
            at, lane = heap[0]
            if self._placed_in[lane] == standing and self._placed_at[lane] == at:
                return lane
            heapq.heappop(heap)
        return None
