"""What a run says and hears while it works: progress outwards, a cancel inwards."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tenure.core.export import ExportProgress

REPORT_SECONDS = 0.2
CHECK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The run's two wires to whoever started it; both are used from the run's own thread only.

    `check_cancelled` raises once the run must stop; what it raises passes through the run unchanged.
    """

    progress: Callable[[ExportProgress], None]
    check_cancelled: Callable[[], None]


class Meter:
    """Counts for the whole run, and keeps both wires from being used too often."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._phase = "plan"
        self._rows_expected: int | None = None
        self._rows_done = 0
        self.bytes_done = 0
        self._next_check = 0.0
        self._next_report = 0.0

    def enter(self, phase: str, *, rows_expected: int | None = None) -> None:
        """Begin a phase (plan, read, publish); it is reported at once."""
        self._phase = phase
        if rows_expected is not None:
            self._rows_expected = rows_expected
        self._report(time.monotonic())
        self._signals.check_cancelled()

    def add_rows(self, rows: int) -> None:
        self._rows_done += rows

    def tick(self) -> None:
        """Call as often as you like."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._signals.check_cancelled()
        if now >= self._next_report:
            self._report(now)

    def _report(self, now: float) -> None:
        self._next_report = now + REPORT_SECONDS
        self._signals.progress(
            ExportProgress(
                phase=self._phase,
                rows_done=self._rows_done,
                rows_expected=self._rows_expected,
                bytes_done=self.bytes_done,
            ),
        )
