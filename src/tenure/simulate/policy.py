"""What the event loop asks of a policy, and how a lane stands when slots are given out."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

Standing = Literal[0, 1, 2]
"""May this lane be given a slot? Plain numbers: this is asked several times for each of millions of jobs."""
OUT: Final = 0
"""No: without work, paused, or at its ceiling."""
WITHIN: Final = 1
"""Yes: below its cap."""
BEYOND: Final = 2
"""By lending: at its cap."""


class News:
    """What happened to one lane since the last claim, as the rows of `tenure.lane_events` together say it."""

    __slots__ = ("arrived", "charged_seconds", "settled", "used_seconds")

    def __init__(self) -> None:
        self.arrived = 0
        self.settled = 0
        self.used_seconds = 0.0
        self.charged_seconds = 0.0


class Policy(Protocol):
    """Decides whose jobs run. Lanes are numbers."""

    @property
    def running(self) -> Sequence[int]: ...

    @property
    def waiting(self) -> Sequence[int]: ...

    @property
    def paused(self) -> Sequence[int]: ...

    def fold(self, news: Mapping[int, News]) -> None:
        """Take in what happened, by lane; the caller claims next."""
        ...

    def set_paused(self, lane: int, *, paused: bool) -> None: ...

    def claim(self, free: int) -> list[tuple[int, float]]:
        """Lanes whose next jobs start now, one entry for each job, with the seconds charged for it."""
        ...

    def standing(self, lane: int) -> Standing: ...

    def owes(self, lane: int) -> bool:
        """Whether the lane has had more than others, and must wait for them to catch up."""
        ...
