"""Expected starts against the policy itself, played out job by job."""

import heapq
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.fairness import Lane, share_out
from tenure.core.ids import TenantId
from tenure.core.place import Load, Place, QueueFacts, Reason, expected_start, hold_ups, would_start

OWN = TenantId("own")
LIMITS = st.sampled_from([1, 2, 3, 1_000_000])


@st.composite
def lanes(draw, tenant):
    running = draw(st.integers(0, 2))
    return Lane(
        tenant_id=tenant,
        virtual_time=draw(st.integers(0, 40)) / 2,
        weight=draw(st.sampled_from([0.5, 1.0, 2.0])),
        estimate_seconds=draw(st.sampled_from([1.0, 2.0, 5.0])),
        running=running,
        cap=draw(LIMITS),
        ceiling=draw(LIMITS) + running,
        waiting=draw(st.integers(1, 12)),
    )


@st.composite
def places(draw):
    own = draw(lanes(OWN))
    rivals = tuple(draw(lanes(f"rival-{number}")) for number in range(draw(st.integers(0, 4))))
    loads = tuple(_load(lane, draw(st.floats(0.1, 1.0))) for lane in (own, *rivals) if lane.running)
    running = sum(load.running for load in loads)
    slots = max(running + draw(st.integers(0, 2)), 1)
    ahead = draw(st.integers(0, 6))
    return Place(
        queue=QueueFacts(
            name="q",
            slots=draw(st.sampled_from([None, slots])),
            headroom=draw(st.integers(0, 1)),
            paused=False,
            floor=0.0,
            workers=1,
            worker_slots=slots,
        ),
        lane=replace(own, waiting=ahead + 1),
        is_lane_paused=False,
        ahead=ahead,
        loads=loads,
        rivals=rivals,
        are_rivals_complete=True,
    )


def _load(lane, left):
    """All of a lane's runs have the same part of their time left."""
    return Load(
        tenant_id=TenantId(lane.tenant_id),
        weight=lane.weight,
        running=lane.running,
        running_seconds=lane.running * lane.estimate_seconds * (1 - left),
        left_seconds=lane.running * lane.estimate_seconds * left,
        longest_left_seconds=lane.estimate_seconds * left,
    )


def _played(place):
    """When the job at the place starts, if every run takes its lane's estimate and nobody comes; None: never."""
    state = {lane.tenant_id: lane for lane in (place.lane, *place.rivals)}
    ends = [(load.left_seconds / load.running, load.tenant_id) for load in place.loads for _ in range(load.running)]
    heapq.heapify(ends)
    now, started = 0.0, 0
    while True:
        running = sum(lane.running for lane in state.values())
        free = place.capacity - running
        slots = place.queue.slots
        lendable = free if slots is None else slots - place.queue.headroom - running
        for tenant, count in share_out(state.values(), free=free, lendable=lendable).items():
            lane = state[tenant]
            state[tenant] = replace(
                lane,
                running=lane.running + count,
                waiting=lane.waiting - count,
                virtual_time=lane.virtual_time + count * lane.estimate_seconds / lane.weight,
            )
            for _ in range(count):
                heapq.heappush(ends, (now + lane.estimate_seconds, tenant))
            started += count if tenant == OWN else 0
            if started > place.ahead:
                return now
        if not ends:
            return None
        now, tenant = heapq.heappop(ends)
        state[tenant] = replace(state[tenant], running=state[tenant].running - 1)


@settings(max_examples=150, deadline=None)
@given(place=places())
def test_a_job_starts_within_its_expected_interval(place):
    expected, played = expected_start(place), _played(place)

    assert expected is not None
    if played is not None:
        assert expected.earliest_seconds <= played + 1e-6
        assert expected.latest_seconds is None or played <= expected.latest_seconds + 1e-6


@settings(max_examples=100, deadline=None)
@given(place=places())
def test_what_would_start_is_next_in_line_and_starts_at_once(place):
    if would_start(place):
        assert (Reason.NEXT_IN_LINE,) == hold_ups(place)
        assert 0.0 == expected_start(place).earliest_seconds == _played(place)
