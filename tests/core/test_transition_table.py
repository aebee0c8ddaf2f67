import pytest

from tenure.core.lifecycle import ENTRY_STATES, TERMINAL, TRANSITIONS, JobEvent, JobState, legal_moves, next_state


def test_only_a_replay_leaves_an_end_and_never_success_or_cancellation():
    left = {(source, event) for source, event in TRANSITIONS if source in TERMINAL}

    assert {(JobState.DEAD, JobEvent.REPLAY), (JobState.QUARANTINED, JobEvent.REPLAY)} == left


def test_only_a_claim_makes_a_job_run():
    assert {(JobState.QUEUED, JobEvent.CLAIM)} == {
        move for move, target in TRANSITIONS.items() if target is JobState.RUNNING
    }


@pytest.mark.parametrize("state", [state for state in JobState if state not in TERMINAL])
def test_from_every_unfinished_state_an_end_can_be_reached(state):
    reached, frontier = set(), {state}
    while frontier:
        reached |= frontier
        frontier = {target for source, target in legal_moves() if source in reached} - reached

    assert reached >= {JobState.SUCCEEDED, JobState.CANCELLED, JobState.DEAD}


def test_every_state_can_be_reached_from_the_beginning():
    reached = set(ENTRY_STATES)
    for _ in JobState:
        reached |= {target for source, target in legal_moves() if source in reached}

    assert set(JobState) == reached


def test_an_illegal_event_leads_nowhere():
    assert next_state(JobState.SUCCEEDED, JobEvent.RETRY) is None
    assert JobState.RUNNING is next_state(JobState.QUEUED, JobEvent.CLAIM)
