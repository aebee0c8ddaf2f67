"""The accounts of a simulation: what each tenant used, what it was due, and what each group held over time.

What a tenant is due is counted while it contends: it has work ready and is below its cap. The slots that contending
tenants hold are split among them by weight, at every moment; what others hold beside them is their own affair. So used
and due are equal in sum, and a tenant with used below due was served less than its weight. The split is kept as one
clock of seconds per weight (Parekh and Gallager's virtual time), read when a tenant begins and ends to contend.
"""

from array import array

from tenure.simulate.load import Load
from tenure.simulate.policy import WITHIN, Standing

BINS_MAX = 480
BINS_BEFORE_END = 120
"""How finely the measured time is cut for the chart. What comes after it is cut alike, or coarser when it is long."""


class Ledger:
    """Accounts of every lane, in columns. `open` says whether they still count: they close when arrivals end."""

    def __init__(self, load: Load) -> None:
        count = load.tenant_count
        self.open = True
        self.worker_seconds = array("d", bytes(8 * count))
        self.used_seconds = array("d", bytes(8 * count))
        self.due_seconds = array("d", bytes(8 * count))
        self.contended_seconds = array("d", bytes(8 * count))
        self.standings = [count, 0, 0]
        """How many lanes stand out, within, beyond."""
        self.contenders_max = 0
        self._weight = [load.groups[index].weight for index in load.lane_groups]
        self._running = [0] * count
        self._standing = bytearray(count)
        self._since = [0.0] * count
        self._clock_since = [0.0] * count
        self._now = 0.0
        self._clock = 0.0
        self._contending_weight = 0.0
        self._contending_slots = 0

    def advance(self, now: float) -> None:
        """Let time pass; nothing changed since the last call."""
        if self._contending_weight > 0:
            self._clock += (now - self._now) * self._contending_slots / self._contending_weight
        self._now = now

    def note(self, lane: int, running: int, standing: Standing) -> None:
        """How the lane is from now on."""
        was, before = self._standing[lane], self._running[lane]
        if was != standing:
            self.standings[was] -= 1
            self.standings[standing] += 1
            self._standing[lane] = standing
            self.contenders_max = max(self.contenders_max, self.standings[WITHIN])
        elif before == running:
            return
        if self.open:
            self._flush(lane, before, contended=was == WITHIN)
            if was == WITHIN:
                self._contending_slots -= before
                self._contending_weight -= self._weight[lane]
            if standing == WITHIN:
                self._contending_slots += running
                self._contending_weight += self._weight[lane]
            elif self.standings[WITHIN] == 0:
                self._contending_weight = 0.0  # sums of many weights do not come back to zero by themselves
        self._running[lane] = running

    def close(self) -> None:
        """End of the measured time: what comes later does not count."""
        for lane, running in enumerate(self._running):
            if running or self._standing[lane]:
                self._flush(lane, running, contended=self._standing[lane] == WITHIN)
        self.open = False

    def _flush(self, lane: int, running: int, *, contended: bool) -> None:
        seconds = self._now - self._since[lane]
        self.worker_seconds[lane] += running * seconds
        if contended:
            self.used_seconds[lane] += running * seconds
            self.contended_seconds[lane] += seconds
            self.due_seconds[lane] += (self._clock - self._clock_since[lane]) * self._weight[lane]
        self._since[lane] = self._now
        self._clock_since[lane] = self._clock


class Series:
    """Slots held by each group over time, as the mean of each bin."""

    def __init__(self, load: Load) -> None:
        self.bin_seconds = load.duration_seconds / BINS_BEFORE_END
        self.slots: list[list[float]] = []
        """One row for each bin, one column for each group."""
        self._held = [0] * len(load.groups)
        self._area = [0.0] * len(load.groups)
        self._since = 0.0

    def pass_time(self, now: float) -> None:
        """Let time pass; nothing changed since the last call."""
        while now >= (end := (len(self.slots) + 1) * self.bin_seconds):
            self._add(end)
            self.slots.append([area / self.bin_seconds for area in self._area])
            self._area = [0.0] * len(self._held)
            if len(self.slots) == BINS_MAX:
                self._coarsen()
        self._add(now)

    def change(self, group: int, slots: int) -> None:
        self._held[group] += slots

    def finish(self, now: float) -> None:
        """Make a last bin of what is left."""
        self.pass_time(now)
        if any(self._area):
            self.slots.append([area / self.bin_seconds for area in self._area])

    def _add(self, until: float) -> None:
        seconds = until - self._since
        if seconds > 0:
            for group, held in enumerate(self._held):
                if held:
                    self._area[group] += held * seconds
            self._since = until

    def _coarsen(self) -> None:
        pairs = zip(self.slots[::2], self.slots[1::2], strict=True)
        self.slots = [[(one + two) / 2 for one, two in zip(*pair, strict=True)] for pair in pairs]
        self.bin_seconds *= 2
