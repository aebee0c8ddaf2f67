"""Whose turn it is: weighted fair shares of worker time, as pure functions.

The algorithm is start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queuing", SIGCOMM 1996). Each lane has a
virtual time in weighted worker-seconds. A claim charges the estimated run time divided by the weight; the end of the
run corrects the charge by what it really took. Jobs are served by their start tag, smallest first: the k-th job of a
lane (from 0) starts at `virtual_time + k * estimate / weight`. A lane's first tag is its virtual time, so the n lanes
of smallest virtual time hold the n smallest tags and no other lane need be looked at. A lane that wakes up starts at
the queue's floor, so idling saves nothing up. For two lanes with work, the served seconds per
weight differ by at most `l_f / w_f + l_m / w_m`, l being the longest run of each.

`store/sql/jobs/claim.sql` does the same in one statement; a property test holds the two together.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One tenant's line in one queue, as the policy sees it."""

    tenant_id: str
    virtual_time: float
    weight: float
    estimate_seconds: float
    """Expected worker-seconds of the next run."""
    running: int
    cap: int
    """Soft limit of concurrent runs: exceeded only by lending."""
    ceiling: int
    """Hard limit of concurrent runs."""
    waiting: int
    """Jobs ready to be claimed."""


_Limit = Callable[[Lane], int]
_Tag = tuple[float, str, Lane]


def share_out(lanes: Iterable[Lane], *, free: int, lendable: int) -> Mapping[str, int]:
    """Number of jobs each tenant may claim now.

    `free` slots go first to lanes below their cap, smallest start tag first, then by tenant id. What is left is lent
    beyond caps, up to ceilings, in the same order, for as long as no more than `lendable` of the free slots are used:
    the rest is headroom, which is never lent.
    """
    waiting = [lane for lane in lanes if lane.waiting > 0]
    within = _serve(waiting, {}, free, limit=lambda lane: min(lane.cap, lane.ceiling))
    lent = min(free, lendable) - sum(within.values())
    return _serve(waiting, within, lent, limit=lambda lane: lane.ceiling)


def _serve(lanes: list[Lane], given: Mapping[str, int], slots: int, *, limit: _Limit) -> dict[str, int]:
    total = dict(given)
    tags = [_tag(lane, total) for lane in lanes if _room(lane, total, limit) > 0]
    heapq.heapify(tags)
    for _ in range(slots):
        if not tags:
            break
        _, _, lane = heapq.heappop(tags)
        total[lane.tenant_id] = total.get(lane.tenant_id, 0) + 1
        if _room(lane, total, limit) > 0:
            heapq.heappush(tags, _tag(lane, total))
    return total


def _tag(lane: Lane, given: Mapping[str, int]) -> _Tag:
    """Start tag of the lane's next job: where its virtual time stands before it."""
    step = lane.estimate_seconds / lane.weight
    return (lane.virtual_time + given.get(lane.tenant_id, 0) * step, lane.tenant_id, lane)


def _room(lane: Lane, given: Mapping[str, int], limit: _Limit) -> int:
    taken = given.get(lane.tenant_id, 0)
    return min(limit(lane) - lane.running - taken, lane.waiting - taken)


def jain_index(shares: Iterable[float]) -> float:
    """Jain's fairness index of worker-seconds per weight: 1 is perfectly fair, 1/n is one taking all.

    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984.
    """
    values = list(shares)
    squares = sum(value * value for value in values)
    return 1.0 if squares == 0 else sum(values) ** 2 / (len(values) * squares)
