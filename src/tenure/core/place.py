"""Where a job stands in its queue: would the next claim take it, what holds it up, about when does it start.

Pure functions over what the store saw. It is the claim's own policy (`core.fairness.share_out`) that answers, on the
lanes as the last claim left them. Not known is how many jobs the other lanes have (they are taken to have many), and
who will come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tenure.core import limits
from tenure.core.fairness import Lane, share_out
from tenure.core.ids import TenantId

FREE_COUNT_MAX = 1_000
"""Free slots beyond this make no difference to an answer."""


class Reason(StrEnum):
    """Why a job is where it is."""

    NOT_YET_DUE = "not_yet_due"
    """It is scheduled for later."""
    WAITS_FOR_RETRY = "waits_for_retry"
    """An attempt ended badly; the next one waits for its time."""
    QUEUE_PAUSED = "queue_paused"
    """An operator paused the queue."""
    TENANT_PAUSED = "tenant_paused"
    """An operator paused the tenant in this queue."""
    NO_WORKER = "no_worker"
    """No worker takes jobs of this queue."""
    NO_SLOTS = "no_slots"
    """The queue's slots are set to 0."""
    TENANT_AT_CEILING = "tenant_at_ceiling"
    """The tenant runs as many jobs as it ever may."""
    TENANT_AT_CAP = "tenant_at_cap"
    """The tenant is at its cap, and there is no idle slot to borrow."""
    OTHERS_ARE_OWED_MORE = "others_are_owed_more"
    """All slots are taken, and tenants that have had less of their share come first."""
    BEHIND_OWN_JOBS = "behind_own_jobs"
    """It is the tenant's turn, but other jobs of the tenant come first."""
    NEXT_IN_LINE = "next_in_line"
    """It starts with the next slot."""
    RUNNING = "running"
    """A worker runs it."""
    CANCEL_REQUESTED = "cancel_requested"
    """A worker runs it and was asked to stop."""
    LEASE_LAPSED = "lease_lapsed"
    """Its worker stopped renewing the lease; the job is taken back."""
    ENDED = "ended"
    """It is over; the timeline tells where the time went."""
    NOTHING_WAITS = "nothing_waits"
    """The tenant has no job in line here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """A queue, and the workers that take it and were heard of lately. `slots` None: as many as the workers have."""

    name: str
    slots: int | None
    headroom: int
    paused: bool
    floor: float
    workers: int
    worker_slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one tenant runs in the queue now. `left_seconds`: what is left of it by the estimates of the claims."""

    tenant_id: TenantId
    weight: float
    running: int
    running_seconds: float
    left_seconds: float
    longest_left_seconds: float
    """Of one of its runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a tenant's lane, `ahead` ready jobs of the lane before it."""

    queue: QueueFacts
    lane: Lane
    """The tenant's own, with what it really runs; `waiting` counts the place itself."""
    is_lane_paused: bool
    ahead: int
    loads: tuple[Load, ...]
    """Of all tenants that run something here."""
    rivals: tuple[Lane, ...]
    """The other lanes with work in line."""
    are_rivals_complete: bool

    @property
    def running(self) -> int:
        return sum(load.running for load in self.loads)

    @property
    def capacity(self) -> int:
        """Slots there are: the queue's, or its workers' when they have fewer."""
        slots = self.queue.slots
        return self.queue.worker_slots if slots is None else min(slots, self.queue.worker_slots)

    @property
    def free(self) -> int:
        return max(min(self.capacity - self.running, FREE_COUNT_MAX), 0)

    @property
    def own(self) -> Load | None:
        return next((load for load in self.loads if load.tenant_id == self.lane.tenant_id), None)

    @property
    def share_used(self) -> float:
        """Part of the slots in use that the tenant holds now."""
        return self.lane.running / self.running if self.running else 0.0

    @property
    def share_due(self) -> float | None:
        """Part its weight comes to among the tenants with work here; None when there are too many to add up."""
        if not self.are_rivals_complete:
            return None
        weights = {load.tenant_id: load.weight for load in self.loads}
        weights |= {TenantId(rival.tenant_id): rival.weight for rival in self.rivals}
        weights[TenantId(self.lane.tenant_id)] = self.lane.weight
        return self.lane.weight / sum(weights.values())

    @property
    def rivals_ahead(self) -> tuple[Lane, ...]:
        """Lanes below their cap whose next start tag is smaller than this place's own."""
        tag = (start_tag(self.lane, self.ahead), self.lane.tenant_id)
        return tuple(
            rival for rival in self.rivals if _is_within_cap(rival) and (rival.virtual_time, rival.tenant_id) < tag
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStart:
    """Seconds from now. `latest_seconds` None: nothing can be promised."""

    earliest_seconds: float
    latest_seconds: float | None


def start_tag(lane: Lane, ahead: int) -> float:
    return lane.virtual_time + ahead * lane.estimate_seconds / lane.weight


def waking_virtual_time(lane: Lane, rivals: Sequence[Lane], floor: float) -> float:
    """Where a lane starts that wakes up now: at what the lane whose turn is next has really used, or later."""
    turn = next((rival for rival in rivals if _is_within_cap(rival)), None)
    if turn is not None:
        floor = turn.virtual_time - turn.running * turn.estimate_seconds / turn.weight
    return max(lane.virtual_time, floor)


def hold_ups(place: Place) -> tuple[Reason, ...]:
    """What keeps a ready job at this place from starting: all that is switched off, else whose turn it is."""
    return tuple(_switched_off(place)) or (_turn(place),)


def would_start(place: Place, *, more_slots: int = 0) -> bool:
    """Whether a claim of all free slots, and so many more, would take the job at this place."""
    return _given(place, more_slots) > place.ahead


def expected_start(place: Place) -> ExpectedStart | None:
    """About when a ready job at this place starts, if nobody else comes and runs take as long as estimated.

    None: it cannot be known, since something is switched off. The bounds are Graham's for lists on equal machines:
    until the job starts, all slots are busy, or as many of the tenant's own as it may have; so it starts after at most
    (work left + work ahead) / slots, and no more than one longest run per slot earlier. At the least one job of each
    lane that comes first is ahead, at the most as many as have smaller start tags.
    """
    ceiling = min(place.lane.ceiling, place.capacity)
    if ceiling <= 0 or any(_switched_off(place)):
        return None
    if would_start(place):
        return ExpectedStart(earliest_seconds=0.0, latest_seconds=limits.POLL_SECONDS)
    own_before = place.ahead * place.lane.estimate_seconds
    own_left = place.own.left_seconds if place.own else 0.0
    left = sum(load.left_seconds for load in place.loads)
    fewest, most = _work_of_rivals(place)
    starts_at_once = place.free > place.ahead + len(place.rivals_ahead)
    earliest = 0.0 if starts_at_once else _earliest(place, left + own_before + fewest, place.capacity)
    if place.lane.running + place.ahead >= ceiling:
        earliest = max(earliest, _earliest(place, own_left + own_before, ceiling))
    cap = min(place.lane.cap, ceiling)
    if cap <= 0 or not place.are_rivals_complete:
        return ExpectedStart(earliest_seconds=earliest, latest_seconds=None)
    latest = (left + own_before + most) / place.capacity
    ends_needed = place.lane.running + place.ahead + 1 - cap
    if ends_needed > 0:
        # While the tenant is at its cap others take its turns, and are not interrupted once it could go on.
        latest += (own_left + own_before) / cap + ends_needed * _longest(place)
    return ExpectedStart(earliest_seconds=earliest, latest_seconds=max(latest, limits.POLL_SECONDS))


def _switched_off(place: Place) -> Iterator[Reason]:
    if place.queue.paused:
        yield Reason.QUEUE_PAUSED
    if place.is_lane_paused:
        yield Reason.TENANT_PAUSED
    if place.queue.workers == 0:
        yield Reason.NO_WORKER
    if place.queue.slots == 0:
        yield Reason.NO_SLOTS


def _turn(place: Place) -> Reason:
    """Whose turn it is when one more slot becomes free."""
    if place.lane.running >= place.lane.ceiling:
        return Reason.TENANT_AT_CEILING
    if not _is_within_cap(place.lane):
        return Reason.NEXT_IN_LINE if would_start(place) else Reason.TENANT_AT_CAP
    if would_start(place, more_slots=1):
        return Reason.NEXT_IN_LINE
    return Reason.BEHIND_OWN_JOBS if _given(place, more_slots=1) else Reason.OTHERS_ARE_OWED_MORE


def _given(place: Place, more_slots: int) -> int:
    free = place.free + more_slots
    slots = place.queue.slots
    lendable = free if slots is None else slots - place.queue.headroom - place.running + more_slots
    rivals = [replace(rival, waiting=FREE_COUNT_MAX + 1) for rival in place.rivals]
    return share_out([place.lane, *rivals], free=free, lendable=lendable).get(place.lane.tenant_id, 0)


def _is_within_cap(lane: Lane) -> bool:
    return lane.running < min(lane.cap, lane.ceiling)


def _work_of_rivals(place: Place) -> tuple[float, float]:
    """Worker-seconds that other lanes have claimed before this place's turn, at least and at most."""
    fewest = sum(rival.estimate_seconds for rival in place.rivals_ahead)
    tag = start_tag(place.lane, place.ahead)
    # A lane of smaller tag goes on until its own tags reach this one: that is (difference * weight) in seconds, and one
    # run more. One that is at its cap now may be below it by then.
    most = sum(
        (tag - rival.virtual_time) * rival.weight + rival.estimate_seconds
        for rival in place.rivals
        if rival.virtual_time <= tag
    )
    return fewest, most


def _earliest(place: Place, work_seconds: float, slots: int) -> float:
    return max((work_seconds - (slots - 1) * _longest(place)) / slots, 0.0)


def _longest(place: Place) -> float:
    """The longest run there is or will be."""
    estimates = (lane.estimate_seconds for lane in (place.lane, *place.rivals))
    return max(*estimates, *(load.longest_left_seconds for load in place.loads), 0.0)
