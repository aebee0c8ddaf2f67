import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.lease import heartbeat_seconds, margin_seconds, stop_at

leases = st.floats(0.01, 3_600.0)


@given(leases, st.floats(0.0, 1e9))
def test_a_run_stops_before_its_lease_can_lapse_however_late_the_database_extended_it(lease, sent_at):
    """The database counts from a later instant than the worker: from when the request arrived, not when it left."""
    earliest_lapse = sent_at + lease

    assert stop_at(sent_at, lease) < earliest_lapse
    assert stop_at(sent_at, lease) > sent_at


@given(leases)
def test_two_heartbeats_may_be_lost_before_a_run_must_stop(lease):
    assert 2 * heartbeat_seconds(lease) <= lease - margin_seconds(lease) or lease < 0.75


@given(leases)
def test_a_heartbeat_comes_at_most_a_third_of_the_lease_after_the_last(lease):
    assert heartbeat_seconds(lease) <= lease / 3


@pytest.mark.parametrize(("lease", "margin"), [(0.2, 0.1), (1.0, 0.25), (2.0, 0.25), (60.0, 6.0), (300.0, 30.0)])
def test_the_margin_is_a_tenth_of_the_lease_within_bounds(lease, margin):
    assert margin == margin_seconds(lease)
