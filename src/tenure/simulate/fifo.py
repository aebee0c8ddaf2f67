"""The plain queue that fair shares are compared with: first in, first out, whoever asks."""

from collections import deque
from collections.abc import Mapping

from tenure.simulate.load import Load
from tenure.simulate.policy import OUT, WITHIN, News, Standing


class FirstInFirstOut:
    """One line for all. Knows no weights, caps, ceilings or headroom; pauses are kept by passing over."""

    def __init__(self, load: Load) -> None:
        count = load.tenant_count
        self.running = [0] * count
        self.waiting = [0] * count
        self.paused = bytearray(count)
        self._line: deque[int] = deque()
        self._held: dict[int, int] = {}
        """Lane -> its jobs that were passed over while it was paused."""

    def fold(self, news: Mapping[int, News]) -> None:
        for lane, item in news.items():
            self.running[lane] -= item.settled
            self.waiting[lane] += item.arrived
            self._line.extend([lane] * item.arrived)

    def set_paused(self, lane: int, *, paused: bool) -> None:
        self.paused[lane] = paused
        if not paused:
            self._line.extendleft([lane] * self._held.pop(lane, 0))

    def claim(self, free: int) -> list[tuple[int, float]]:
        claimed: list[tuple[int, float]] = []
        while len(claimed) < free and self._line:
            lane = self._line.popleft()
            if self.paused[lane]:
                self._held[lane] = self._held.get(lane, 0) + 1
                continue
            self.waiting[lane] -= 1
            self.running[lane] += 1
            claimed.append((lane, 0.0))
        return claimed

    def standing(self, lane: int) -> Standing:
        return WITHIN if self.waiting[lane] and not self.paused[lane] else OUT

    def owes(self, lane: int) -> bool:  # noqa: ARG002  nobody ever does
        return False
