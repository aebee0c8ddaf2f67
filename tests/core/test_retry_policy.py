from hypothesis import given
from hypothesis import strategies as st

from tenure.core.retry import RetryPolicy, lapse_wait_seconds

POLICY = RetryPolicy(base_seconds=5.0, factor=2.0, cap_seconds=60.0, jitter=0.0)

policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    base_seconds=st.floats(0.001, 1e4),
    factor=st.floats(1.0, 10.0),
    cap_seconds=st.floats(0.001, 1e6),
    jitter=st.floats(0.0, 1.0),
)
chances = st.floats(0.0, 1.0, exclude_max=True)
failures = st.integers(1, 2**31)


def test_waits_double_from_the_base_up_to_the_cap():
    waits = [POLICY.wait_seconds(failures=count, chance=0.5) for count in range(1, 7)]

    assert [5.0, 10.0, 20.0, 40.0, 60.0, 60.0] == waits


def test_a_factor_of_one_waits_the_same_each_time():
    fixed = RetryPolicy(base_seconds=30.0, factor=1.0, jitter=0.0)

    assert {30.0} == {fixed.wait_seconds(failures=count, chance=0.9) for count in range(1, 50)}


@given(policies, failures, chances)
def test_a_wait_lies_between_its_full_length_less_jitter_and_its_full_length(policy, count, chance):
    full = policy.wait_seconds(failures=count, chance=0.0)
    wait = policy.wait_seconds(failures=count, chance=chance)

    assert full * (1 - policy.jitter) * 0.999_999 <= wait <= full <= policy.cap_seconds


@given(policies, failures)
def test_a_further_failure_never_shortens_the_wait(policy, count):
    now, later = (policy.wait_seconds(failures=number, chance=0.0) for number in (count, count + 1))

    assert now <= later


def test_the_first_lapse_waits_for_nothing_and_every_further_one_twice_as_long():
    waits = [lapse_wait_seconds(lapses, base_seconds=30.0, cap_seconds=900.0) for lapses in range(1, 9)]

    assert [0.0, 30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 900.0] == waits


@given(st.integers(0, 2**31))
def test_no_number_of_lapses_waits_beyond_the_cap(lapses):
    assert 0.0 <= lapse_wait_seconds(lapses, base_seconds=30.0, cap_seconds=900.0) <= 900.0
