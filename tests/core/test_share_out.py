from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.fairness import Lane, jain_index, share_out


def lane(tenant="a", **facts):
    values = {
        "virtual_time": 0.0,
        "weight": 1.0,
        "estimate_seconds": 1.0,
        "running": 0,
        "cap": 100,
        "ceiling": 100,
        "waiting": 100,
        **facts,
    }
    return Lane(tenant_id=tenant, **values)


lanes = st.lists(
    st.builds(
        Lane,
        tenant_id=st.sampled_from("abcdefgh"),
        virtual_time=st.floats(0, 100),
        weight=st.floats(0.1, 10),
        estimate_seconds=st.floats(0.01, 100),
        running=st.integers(0, 5),
        cap=st.integers(0, 8),
        ceiling=st.integers(0, 10),
        waiting=st.integers(0, 10),
    ),
    max_size=8,
    unique_by=lambda lane: lane.tenant_id,
)
slots = st.integers(-3, 40)


def test_weights_share_the_slots():
    assert {"a": 9, "b": 3} == share_out([lane("a", weight=3.0), lane("b")], free=12, lendable=12)


def test_longer_jobs_get_fewer_slots():
    assert {"a": 2, "b": 8} == share_out([lane("a", estimate_seconds=4.0), lane("b")], free=10, lendable=10)


def test_the_smallest_virtual_time_goes_first_and_ties_go_by_name():
    shares = share_out([lane("c"), lane("b"), lane("a", virtual_time=0.5)], free=2, lendable=2)

    assert {"b": 1, "c": 1} == shares


def test_a_job_is_served_by_where_it_starts_not_by_where_it_ends():
    """A lane with long jobs has its turn when it is due, and pays afterwards."""
    shares = share_out([lane("long", estimate_seconds=1_000.0), lane("short", virtual_time=1.0)], free=1, lendable=1)

    assert {"long": 1} == shares


def test_slots_beyond_caps_are_lent_and_headroom_is_not():
    assert {"a": 7} == share_out([lane(cap=2)], free=10, lendable=7)


def test_headroom_counts_what_lanes_within_their_caps_took():
    shares = share_out([lane("borrower", cap=0), lane("owner", cap=5, waiting=5)], free=10, lendable=7)

    assert {"borrower": 2, "owner": 5} == shares


def test_nobody_borrows_while_somebody_below_its_cap_waits():
    shares = share_out([lane("greedy", cap=1), lane("modest", virtual_time=99.0, cap=50)], free=5, lendable=5)

    assert {"greedy": 1, "modest": 4} == shares


@given(lanes, slots, slots)
def test_no_limit_is_passed(lanes, free, lendable):
    shares = share_out(lanes, free=free, lendable=lendable)
    borrowed = sum(max(0, shares.get(each.tenant_id, 0) - max(0, each.cap - each.running)) for each in lanes)

    assert sum(shares.values()) <= max(free, 0)
    assert all(
        shares.get(each.tenant_id, 0) <= max(0, min(each.waiting, each.ceiling - each.running)) for each in lanes
    )
    assert borrowed == 0 or sum(shares.values()) <= lendable


@given(lanes, slots)
def test_no_slot_stays_idle_while_somebody_may_use_it(lanes, free):
    shares = share_out(lanes, free=free, lendable=free)
    wanted = sum(max(0, min(each.waiting, each.ceiling - each.running)) for each in lanes)

    assert min(max(free, 0), wanted) == sum(shares.values())


@given(lanes, slots)
def test_the_order_of_the_lanes_does_not_matter(lanes, free):
    assert share_out(lanes, free=free, lendable=free) == share_out(lanes[::-1], free=free, lendable=free)


@given(lanes, st.integers(0, 10))
def test_only_the_lanes_of_smallest_virtual_time_need_be_looked_at(lanes, free):
    """What lets the SQL look at n lanes only: a lane's first tag is its virtual time."""
    open_lanes = [replace(each, cap=20, ceiling=20) for each in lanes if each.waiting]
    nearest = sorted(open_lanes, key=lambda each: (each.virtual_time, each.tenant_id))[:free]

    assert share_out(open_lanes, free=free, lendable=free) == share_out(nearest, free=free, lendable=free)


@given(
    st.lists(st.tuples(st.floats(0.5, 4.0), st.floats(0.5, 8.0)), min_size=2, max_size=5),
    st.integers(50, 300),
)
def test_served_time_by_weight_differs_by_no_more_than_one_run_of_each(tenants, count):
    """The bound of start-time fair queueing, for lanes that always have work (Goyal, Vin, Cheng 1996)."""
    now = {
        f"t{number}": lane(f"t{number}", weight=weight, estimate_seconds=seconds, waiting=10_000)
        for number, (weight, seconds) in enumerate(tenants)
    }
    for _ in range(count):
        (tenant,) = share_out(now.values(), free=1, lendable=1)
        each = now[tenant]
        now[tenant] = replace(each, virtual_time=each.virtual_time + each.estimate_seconds / each.weight)
    reach = [(each.virtual_time, each.estimate_seconds / each.weight) for each in now.values()]
    apart = [first - second - one - other for first, one in reach for second, other in reach]

    assert max(apart) <= 1e-6


@pytest.mark.parametrize(
    ("shares", "index"), [([1.0, 1.0, 1.0], 1.0), ([5.0, 0.0], 0.5), ([], 1.0), ([0.0, 0.0], 1.0), ([2.0, 1.0], 0.9)]
)
def test_jains_index_is_one_when_fair_and_one_of_n_when_one_takes_all(shares, index):
    assert pytest.approx(index) == jain_index(shares)
