"""What an operator may change while everything runs, and the values that are allowed.

None in a change leaves the value as it is; `UNLIMITED` lifts a limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from tenure.core import limits
from tenure.core.errors import FieldProblem, InvalidInputError
from tenure.core.ids import TenantId

WEIGHT_MIN = 0.001
"""A smaller one would push virtual times so far out that seconds no longer count beside them."""
WEIGHT_MAX = 1_000_000.0
COUNT_MAX = 1_000_000
"""Largest cap, ceiling, number of slots and headroom. A lane's cap or ceiling of this size is no limit."""


class _Limitless(Enum):
    UNLIMITED = "unlimited"


Unlimited = Literal[_Limitless.UNLIMITED]
UNLIMITED: Final = _Limitless.UNLIMITED
Limit = int | Unlimited


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChanges:
    """Of one tenant in one queue."""

    weight: float | None = None
    cap: Limit | None = None
    ceiling: Limit | None = None
    paused: bool | None = None

    def require_valid(self) -> None:
        """Raises `InvalidInputError` naming every wrong field."""
        _raise(_problems(weight=self.weight, cap=self.cap, ceiling=self.ceiling, paused=self.paused))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanges:
    """Of one queue."""

    slots: Limit | None = None
    headroom: int | None = None
    paused: bool | None = None

    def require_valid(self) -> None:
        """Raises `InvalidInputError` naming every wrong field."""
        _raise(_problems(slots=self.slots, headroom=self.headroom, paused=self.paused))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSettings:
    """One tenant's settings in one queue. `cap` and `ceiling` None: no limit."""

    queue: str
    tenant_id: TenantId
    weight: float
    cap: int | None
    ceiling: int | None
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """One queue's settings. `slots` None: as many as its workers have."""

    queue: str
    slots: int | None
    headroom: int
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneView:
    """One lane as an operator sees it. `waiting` stops counting at `limits.WAITING_COUNT_MAX`."""

    settings: LaneSettings
    running: int
    waiting: int
    virtual_time: float
    lead_seconds: float
    """Weighted worker-seconds by which it is ahead of the lane whose turn is next."""
    estimate_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue as an operator sees it. `waiting` stops counting at `limits.WAITING_COUNT_MAX`."""

    settings: QueueSettings
    running: int
    waiting: int
    workers: int
    """That were heard of lately."""
    worker_slots: int
    floor: float


def limit_or_none(stored: int) -> int | None:
    """A cap or ceiling as it is shown: None where it is no limit."""
    return None if stored >= COUNT_MAX else stored


def is_name(text: str, chars_max: int) -> bool:
    """Whether it can be the name of a queue or the id of a tenant at all."""
    return 1 <= len(text) <= chars_max and text.isprintable()


def require_tenant_id(text: str) -> TenantId:
    """Raises `InvalidInputError`."""
    if not is_name(text, limits.TENANT_ID_CHARS_MAX):
        detail = f"must have 1 to {limits.TENANT_ID_CHARS_MAX} printable characters"
        raise InvalidInputError(FieldProblem(pointer="/tenant", detail=detail))
    return TenantId(text)


def _problems(**values: float | Limit | None) -> Iterator[FieldProblem]:
    if all(value is None for value in values.values()):
        yield FieldProblem(pointer="", detail=f"must change something: {', '.join(values)}")
    for name, value in values.items():
        expected = _expected(name, value)
        if expected is not None:
            yield FieldProblem(pointer=f"/{name}", detail=f"must be {expected}")


def _expected(name: str, value: float | Limit | None) -> str | None:
    """What the field must be, when it is not."""
    match name:
        case _ if value is None:
            return None
        case "paused":
            return None if isinstance(value, bool) else "true or false"
        case "weight":
            return None if _is_weight(value) else f"a number from {WEIGHT_MIN:g} to {WEIGHT_MAX:,.0f}"
        case "headroom":
            return None if _is_count(value) else f"a whole number from 0 to {COUNT_MAX:,}"
        case _:
            fine = value is UNLIMITED or _is_count(value)
            return None if fine else f"a whole number from 0 to {COUNT_MAX:,}, or unlimited"


def _is_weight(value: object) -> bool:
    # NaN fails both comparisons; a bool is no number here.
    return isinstance(value, int | float) and not isinstance(value, bool) and WEIGHT_MIN <= value <= WEIGHT_MAX


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def _raise(problems: Iterator[FieldProblem]) -> None:
    if found := tuple(problems):
        raise InvalidInputError(*found)
