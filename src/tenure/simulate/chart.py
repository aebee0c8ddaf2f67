"""Draws summaries as one SVG: who held the slots, and how long jobs waited; one column for each policy."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from tenure.simulate.load import Load
from tenure.simulate.summary import Summary

COLOURS = ("#3b6fb6", "#e08a2e", "#3f9d78", "#b8567f", "#7b68b5", "#8c7a55", "#4aa3b8", "#9aa0a6")
"""The last one stands for all groups beyond the first seven."""
INK, FAINT, LINES = "#22272e", "#6b7480", "#e4e7eb"
POLICY_TITLES = {"fair": "fair shares", "fifo": "first in, first out"}
PLOT_WIDTH, SLOTS_HEIGHT, WAITS_HEIGHT = 500, 220, 180
LEFT, TOP, GAP_X, GAP_Y, RIGHT, BOTTOM = 74, 118, 86, 74, 30, 48
STEPS = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 604_800)
TIME_TICKS_MAX = 6
WAIT_TICKS = (1, 10, 60, 600, 3_600, 36_000, 86_400, 864_000)
"""Seconds on the axis of waits, which is logarithmic."""


def draw(load: Load, summaries: Sequence[Summary]) -> str:
    """The chart as text of an SVG file."""
    return "\n".join(_Chart(load, summaries).lines()) + "\n"


def time_text(seconds: float, *, beside: float | None = None) -> str:
    """`45 s`, `10 min`, `1.5 h`, `2 d`. With `beside`, in the unit that this time has: for an axis."""
    size = seconds if beside is None else beside
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if size >= 2 * unit or size == unit:
            return f"{seconds / unit:.3g} {name}" if seconds else "0"
    return f"{seconds:.3g} s"


class _Chart:
    def __init__(self, load: Load, summaries: Sequence[Summary]) -> None:
        self._load, self._summaries = load, summaries
        self._seconds = max(*(summary.ended_at for summary in summaries), load.duration_seconds)
        self._drains = self._seconds > 1.01 * load.duration_seconds  # a gap too small to see is none
        self._wait_max = max(
            [60.0, *(wait or 0.0 for summary in summaries for row in summary.waits_by_arrival for wait in row)]
        )
        largest = sorted(summaries[0].groups, key=lambda group: -group.worker_seconds)[: len(COLOURS) - 1]
        shown = [group.name for group in summaries[0].groups if group in largest]
        self._colour_of = [shown.index(group.name) if group.name in shown else -1 for group in summaries[0].groups]
        self._names = [*shown, "others"] if len(shown) < len(load.groups) else shown
        self._width = LEFT + len(summaries) * PLOT_WIDTH + (len(summaries) - 1) * GAP_X + RIGHT

    def lines(self) -> Iterator[str]:
        height = TOP + SLOTS_HEIGHT + GAP_Y + WAITS_HEIGHT + BOTTOM
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width} {height}" width="{self._width}" '
            f'height="{height}" font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif" '
            f'font-size="12" fill="{INK}">'
        )
        yield f"<title>{escape(self._load.name)}</title>"
        yield '<rect width="100%" height="100%" fill="#fff"/>'
        yield _text(LEFT, 34, self._load.name, size=20, weight=600)
        facts = f"{self._load.tenant_count:,} tenants, {self._load.slots:,} slots, {self._summaries[0].jobs:,} jobs"
        yield _text(LEFT, 55, facts, fill=FAINT)
        yield from self._legend(78)
        for column, summary in enumerate(self._summaries):
            left = LEFT + column * (PLOT_WIDTH + GAP_X)
            yield from self._slots(summary, left)
            yield from self._waits(summary, left)
        yield "</svg>"

    def _legend(self, y: int) -> Iterator[str]:
        x = float(LEFT)
        for index, name in enumerate(self._names):
            colour = COLOURS[index if name != "others" else -1]
            yield f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" rx="3" fill="{colour}"/>'
            yield _text(x + 18, y, name)
            x += 18 + 7 * len(name) + 22

    def _slots(self, summary: Summary, left: int) -> Iterator[str]:
        bottom = TOP + SLOTS_HEIGHT
        yield _text(left, TOP - 14, f"Slots held, {POLICY_TITLES[summary.policy]}", size=13, weight=600)
        for part in (0, 0.25, 0.5, 0.75, 1):
            y = bottom - part * SLOTS_HEIGHT
            yield _rule(left, y, left + PLOT_WIDTH, y)
            yield _text(left - 8, y + 4, f"{part * summary.slots:,.3g}", anchor="end", fill=FAINT)
        scale = SLOTS_HEIGHT / summary.slots
        below = [0.0] * len(summary.slots_held)
        for colour in range(len(self._names)):
            above = [low + self._held(row, colour) for low, row in zip(below, summary.slots_held, strict=True)]
            upper = self._steps(summary, left, [bottom - scale * value for value in above])
            lower = self._steps(summary, left, [bottom - scale * value for value in below])
            yield f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{self._fill(colour)}" fill-opacity=".88"/>'
            below = above
        yield from self._time_axis(left, bottom, TOP)

    def _waits(self, summary: Summary, left: int) -> Iterator[str]:
        top = TOP + SLOTS_HEIGHT + GAP_Y
        bottom = top + WAITS_HEIGHT
        yield _text(left, top - 14, "Wait, 95th percentile, by time of arrival", size=13, weight=600)
        for seconds in WAIT_TICKS:
            if seconds <= self._wait_max:
                y = bottom - self._wait_height(seconds)
                yield _rule(left, y, left + PLOT_WIDTH, y)
                yield _text(left - 8, y + 4, time_text(seconds), anchor="end", fill=FAINT)
        for row, colour in zip(summary.waits_by_arrival, self._colour_of, strict=True):
            for run in _runs(row):
                xs = [left + self._x((index + 0.5) * summary.wait_bin_seconds) for index, _ in run]
                ys = [bottom - self._wait_height(wait) for _, wait in run]
                yield _line(xs, ys, self._fill(colour))
        yield from self._time_axis(left, bottom, top)
        if self._drains:
            x = self._x(self._load.duration_seconds)
            side, anchor = (-6, "end") if x > PLOT_WIDTH / 2 else (6, "start")
            yield _text(left + x + side, top + 12, "arrivals end", size=11, anchor=anchor, fill=FAINT)

    def _time_axis(self, left: int, bottom: int, top: int) -> Iterator[str]:
        step = next((step for step in STEPS if self._seconds / step <= TIME_TICKS_MAX), STEPS[-1])
        yield f'<path d="M{left},{bottom} h{PLOT_WIDTH}" stroke="{FAINT}"/>'
        for turn in range(int(self._seconds / step) + 1):
            label = time_text(turn * step, beside=self._seconds)
            yield _text(left + self._x(turn * step), bottom + 18, label, anchor="middle", fill=FAINT)
        if self._drains:
            x = left + self._x(self._load.duration_seconds)
            yield f'<path d="M{x:.1f},{top} V{bottom}" stroke="{INK}" stroke-dasharray="3 4" stroke-opacity=".6"/>'

    def _steps(self, summary: Summary, left: int, heights: Sequence[float]) -> list[str]:
        points: list[str] = []
        for index, y in enumerate(heights):
            start, end = index * summary.bin_seconds, min((index + 1) * summary.bin_seconds, self._seconds)
            points += [f"{left + self._x(start):.1f},{y:.1f}", f"{left + self._x(end):.1f},{y:.1f}"]
        return points

    def _held(self, row: Sequence[float], colour: int) -> float:
        wanted = -1 if self._names[colour] == "others" else colour
        return sum(held for held, of_group in zip(row, self._colour_of, strict=True) if of_group == wanted)

    def _fill(self, colour: int) -> str:
        return COLOURS[-1] if colour < 0 or self._names[colour] == "others" else COLOURS[colour]

    def _x(self, seconds: float) -> float:
        return PLOT_WIDTH * seconds / self._seconds

    def _wait_height(self, seconds: float) -> float:
        """Logarithmic from one second up; shorter waits lie on the axis."""
        return WAITS_HEIGHT * math.log(max(seconds, 1.0)) / math.log(1.3 * self._wait_max)


def _runs(row: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Stretches of neighbours that have a value."""
    run: list[tuple[int, float]] = []
    for index, wait in enumerate([*row, None]):
        if wait is not None:
            run.append((index, wait))
        elif run:
            yield run
            run = []


def _line(xs: Sequence[float], ys: Sequence[float], colour: str) -> str:
    """A line, or a dot where there is but one point."""
    if len(xs) == 1:
        return f'<circle cx="{xs[0]:.1f}" cy="{ys[0]:.1f}" r="3.5" fill="{colour}"/>'
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.0f},{y1:.1f} L{x2:.0f},{y2:.1f}" stroke="{LINES}"/>'


def _text(x: float, y: float, text: str, **style: str | int) -> str:
    names = {"size": "font-size", "weight": "font-weight", "anchor": "text-anchor", "fill": "fill"}
    extra = "".join(f' {names[name]}="{value}"' for name, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{escape(text)}</text>'
