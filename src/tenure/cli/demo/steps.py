"""How the demo prints: numbered steps, and under each what happened, as aligned label and text.

Plain ASCII of our own, so that it reads the same in a pipe, without colours, in sixty columns and in the C locale.
"""

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

INDENT = "   "
LABEL_CHARS = 10
MARGIN = INDENT + " " * LABEL_CHARS
WIDTH_MAX = 100
"""Longer lines are hard to read, however wide the terminal is."""
WIDTH_MIN = 40


class Steps:
    """Prints to one console and counts the steps."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._number = 0

    @property
    def live(self) -> bool:
        """Whether lines can be redrawn."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Begin a step; when the block is left well, tell the time it took."""
        self.title(title)
        started = time.monotonic()
        yield
        self.fact("time", seconds_text(time.monotonic() - started))

    def title(self, title: str) -> None:
        """Begin a step whose time is not taken here."""
        self._number += 1
        number = f"{self._number}".ljust(len(INDENT))
        self.line()
        for text in self._wrapped(title, number, INDENT):
            self._print(Text(text, style="bold"))

    def fact(self, label: str, text: str, *, style: str = "") -> None:
        """One fact of the step; long text continues under itself. The label may be empty."""
        for count, line in enumerate(self._wrapped(text, MARGIN, MARGIN)):
            shown = Text(INDENT + label.ljust(LABEL_CHARS) if count == 0 else MARGIN, style="dim")
            self._print(shown.append(line[len(MARGIN) :], style=f"not dim {style}"))

    @contextmanager
    def waiting(self) -> Iterator[Callable[[str], None]]:
        """Gives a function that tells what is waited for, on a line that goes away; in a pipe it says nothing."""
        if not self.live:
            yield lambda _: None
            return
        with Live(console=self.console, transient=True) as live:
            yield lambda text: live.update(Text(MARGIN + text, style="dim"))

    def verbatim(self, text: str) -> None:
        """Lines to be copied: indented, never broken."""
        for line in text.splitlines():
            self._print(Text(INDENT + line))

    def line(self, text: str = "", *, style: str = "") -> None:
        """A line outside the steps."""
        self._print(Text(text, style=style))

    def _wrapped(self, text: str, first: str, rest: str) -> list[str]:
        width = max(WIDTH_MIN, min(self.console.width, WIDTH_MAX))
        return textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )

    def _print(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)


def seconds_text(seconds: float) -> str:
    """A duration as a person would say it."""
    if seconds < 0.1:  # noqa: PLR2004  below, the second decimal says nothing
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"  # noqa: PLR2004


def bytes_text(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count:,} bytes"  # noqa: PLR2004
