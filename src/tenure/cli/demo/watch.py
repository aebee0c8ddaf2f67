"""Shows a running export: a bar where lines can be redrawn, a line now and then where they cannot."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, TextColumn

from tenure.api.documents import UNFINISHED, ExportDocument, ProgressDocument
from tenure.cli.demo.client import TenantClient
from tenure.cli.demo.running import DemoError
from tenure.cli.demo.steps import INDENT, LABEL_CHARS, Steps
from tenure.core.ids import JobId

POLL_SECONDS = 0.1
LIMIT_SECONDS = 180.0
LINE_PERCENT = 25
"""Without a bar, a line is printed each time this much more is done."""
PHASE_WORDS = {"plan": "planning", "read": "reading", "publish": "proving"}


def watch(client: TenantClient, export_id: JobId, steps: Steps) -> ExportDocument:
    """The export once it is finished. Raises DemoError when it takes too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    with _bar(steps) if steps.live else _lines(steps) as view:
        while True:
            export = client.show(export_id)
            view.show(export)
            if export.status not in UNFINISHED:
                return export
            if time.monotonic() > deadline:
                raise DemoError(f"export {export_id} is still {export.status} after {LIMIT_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)


class _View(Protocol):
    def show(self, export: ExportDocument, /) -> None: ...


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("waiting", total=None)

    def show(self, export: ExportDocument) -> None:
        now = export.progress
        if now is not None:
            self._progress.update(self._task, description=_words(now), total=now.rows_expected, completed=now.rows_done)


class _Lines:
    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._shown: tuple[int, str, int] | None = None

    def show(self, export: ExportDocument) -> None:
        now = export.progress
        if now is None or export.status not in UNFINISHED:
            return
        mark = (export.attempt, now.phase, (now.percent or 0) // LINE_PERCENT)
        if mark != self._shown:
            self._shown = mark
            self._steps.fact("progress", _words(now))


@contextmanager
def _bar(steps: Steps) -> Iterator[_View]:
    label = TextColumn(INDENT + "progress".ljust(LABEL_CHARS - 1))
    columns = (label, BarColumn(bar_width=24), TextColumn("{task.description}"))
    with Progress(*columns, console=steps.console, transient=True) as progress:
        yield _Bar(progress)


@contextmanager
def _lines(steps: Steps) -> Iterator[_View]:
    yield _Lines(steps)


def _words(now: ProgressDocument) -> str:
    phase = PHASE_WORDS.get(now.phase, now.phase)
    if now.rows_expected is None:
        return phase
    return f"{phase}: {now.rows_done:,} of {now.rows_expected:,} rows, {now.percent or 0} %"
