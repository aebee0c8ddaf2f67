from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.ids import JobId, LeaseToken, TenantId
from tenure.core.job import Claim, Fence
from tenure.core.lifecycle import TRANSITIONS, JobEvent, JobState
from tenure.core.retry import RetryPolicy
from tenure.core.run import (
    Cancelled,
    Crashed,
    Failed,
    Released,
    RunError,
    RunOutcome,
    RunUsage,
    Succeeded,
)
from tenure.core.settlement import decide, lapse_event

POLICY = RetryPolicy(base_seconds=8.0, factor=2.0, cap_seconds=100.0, jitter=0.5)
USAGE = RunUsage(pid=7, peak_memory_bytes=1_000)


def claim(*, failures=0, max_attempts=3, crashes=0, max_crashes=3):
    return Claim(
        fence=Fence(job_id=JobId(UUID(int=1)), attempt=9, lease_token=LeaseToken(UUID(int=2))),
        tenant_id=TenantId("acme"),
        queue="test",
        kind="work",
        args=b"{}",
        lease_seconds=60.0,
        failures=failures,
        max_attempts=max_attempts,
        crashes=crashes,
        max_crashes=max_crashes,
    )


def error(**facts):
    return RunError(**{"error_class": "SomeError", "message": "no", "code": "some_error", **facts})


@pytest.mark.parametrize(
    ("end", "event", "outcome"),
    [
        (Succeeded(result=b"1", usage=USAGE), JobEvent.SUCCEED, RunOutcome.SUCCEEDED),
        (Released(reason="stop", usage=USAGE), JobEvent.RELEASE, RunOutcome.RELEASED),
        (Cancelled(usage=USAGE), JobEvent.CANCEL, RunOutcome.CANCELLED),
        (Failed(error=error(), usage=USAGE), JobEvent.RETRY, RunOutcome.FAILED),
        (Failed(error=error(retryable=False), usage=USAGE), JobEvent.FAIL, RunOutcome.FAILED),
        (Crashed(error=error(), usage=USAGE), JobEvent.LAPSE, RunOutcome.FAILED),
    ],
)
def test_an_end_becomes_its_event_and_keeps_what_is_known_of_the_run(end, event, outcome):
    settlement = decide(claim(), end, POLICY, chance=0.0)

    assert (event, outcome, TRANSITIONS[JobState.RUNNING, event]) == (
        settlement.event,
        settlement.outcome,
        settlement.state,
    )
    assert (claim().fence, USAGE) == (settlement.fence, settlement.usage)
    assert getattr(end, "error", None) == settlement.error
    assert getattr(end, "result", None) == settlement.result


@given(failures=st.integers(0, 20), max_attempts=st.integers(1, 20))
def test_a_failure_is_tried_again_exactly_while_budget_is_left(failures, max_attempts):
    settlement = decide(claim(failures=failures, max_attempts=max_attempts), Failed(error=error()), POLICY, chance=0.0)

    assert (failures + 1 < max_attempts) == (settlement.event is JobEvent.RETRY)
    assert settlement.counts_as_failure


@given(failures=st.integers(0, 20))
def test_a_permanent_error_is_never_tried_again(failures):
    settlement = decide(
        claim(failures=failures, max_attempts=1_000), Failed(error=error(retryable=False)), POLICY, chance=0.0
    )

    assert JobEvent.FAIL is settlement.event


@given(crashes=st.integers(0, 20), max_crashes=st.integers(1, 20))
def test_a_crash_uses_the_crash_budget_alone(crashes, max_crashes):
    settlement = decide(
        claim(crashes=crashes, max_crashes=max_crashes, max_attempts=1), Crashed(error=error()), POLICY, chance=0.0
    )

    assert (crashes + 1 >= max_crashes) == (settlement.event is JobEvent.QUARANTINE)
    assert (settlement.counts_as_crash, settlement.counts_as_failure) == (True, False)


@given(
    attempts=st.integers(1, 8),
    crashes=st.integers(1, 8),
    ends=st.lists(st.sampled_from(["fail", "crash", "release"]), min_size=8, max_size=20),
)
def test_failures_and_crashes_end_a_job_within_both_budgets_and_releases_never_do(attempts, crashes, ends):
    """Invariant 12: claims are bounded by the two budgets and the releases."""
    counts = {"fail": 0, "crash": 0, "release": 0}
    state = JobState.QUEUED
    for end in ends:
        now = claim(failures=counts["fail"], max_attempts=attempts, crashes=counts["crash"], max_crashes=crashes)
        run_end = {"fail": Failed(error=error()), "crash": Crashed(error=error()), "release": Released(reason="stop")}[
            end
        ]
        settlement = decide(now, run_end, POLICY, chance=0.0)
        counts["fail"] += settlement.counts_as_failure
        counts["crash"] += settlement.counts_as_crash
        counts["release"] += settlement.counts_as_release
        state = settlement.state
        if state in (JobState.DEAD, JobState.QUARANTINED):
            break

    assert counts["fail"] <= attempts
    assert counts["crash"] <= crashes
    assert (counts["fail"] == attempts) == (state is JobState.DEAD)
    assert (counts["crash"] == crashes) == (state is JobState.QUARANTINED)


@pytest.mark.parametrize(
    ("crashes", "event"), [(0, JobEvent.LAPSE), (1, JobEvent.LAPSE_AGAIN), (2, JobEvent.QUARANTINE)]
)
def test_the_first_crash_goes_on_at_once_the_next_waits_and_the_last_is_parked(crashes, event):
    settlement = decide(claim(crashes=crashes), Crashed(error=error()), POLICY, chance=0.0)

    assert event is settlement.event


@pytest.mark.parametrize(("asked", "seconds"), [(None, 6.0), (0.0, 0.0), (30.0, 30.0), (1e9, 100.0), (-5.0, 0.0)])
def test_an_error_that_says_when_to_come_back_is_obeyed_within_the_cap(asked, seconds):
    settlement = decide(claim(), Failed(error=error(retry_after_seconds=asked)), POLICY, chance=0.5)

    assert seconds == settlement.wait_seconds


@given(cancel=st.booleans(), crashes=st.integers(1, 10), max_crashes=st.integers(1, 10), lapses=st.integers(1, 10))
def test_a_lapse_cancels_if_asked_else_quarantines_if_spent_else_waits_from_the_second_on(
    cancel, crashes, max_crashes, lapses
):
    expected = (
        JobEvent.CANCEL
        if cancel
        else JobEvent.QUARANTINE
        if crashes >= max_crashes
        else JobEvent.LAPSE_AGAIN
        if lapses >= 2
        else JobEvent.LAPSE
    )

    assert expected is lapse_event(cancel_requested=cancel, crashes=crashes, max_crashes=max_crashes, lapses=lapses)
