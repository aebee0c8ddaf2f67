"""Every (state, event) pair, and every move without an event, on the real database."""

from uuid import uuid4

import psycopg
import pytest
from store_world import (
    CANCELLED,
    CRASH,
    FAILURE,
    FAILURE_FOR_GOOD,
    KIND,
    RELEASE,
    SUCCESS,
    new_job,
)

from tenure.core.ids import LeaseToken
from tenure.core.job import Claim, Fence
from tenure.core.lifecycle import ENTRY_STATES, TERMINAL, TRANSITIONS, JobEvent, JobState, legal_moves
from tenure.store import jobs

ALL_PAIRS = [(source, target) for source in JobState for target in JobState if source is not target]


@pytest.mark.parametrize("event", JobEvent)
async def test_an_event_moves_a_job_exactly_as_the_table_says_and_else_changes_nothing(world, event):
    for statement in _STATEMENTS[event]:
        moved = {}
        for state in JobState:
            await world.reset()
            job_id, claim = await _bring_to(world, state, event)
            before = await world.job(job_id)
            await statement(world, job_id, claim)
            after = await world.job(job_id)
            moved[state] = None if after == before else JobState(after["state"])

        assert {state: TRANSITIONS.get((state, event)) for state in JobState} == moved


@pytest.mark.parametrize("state", JobState)
async def test_the_database_accepts_exactly_the_legal_moves(world, state):
    job_id, _ = await _bring_to(world, state)
    accepted = {target for target in JobState if await _accepts(world, job_id, f"state = '{target}'", target)}

    assert {target for source, target in legal_moves() if source is state} == accepted - {state}


@pytest.mark.parametrize("state", JobState)
async def test_an_attempt_never_falls_and_rises_only_by_one_in_a_claim(world, state):
    job_id, _ = await _bring_to(world, state)
    accepted = {
        (target, step)
        for target in JobState
        for step in (-1, 0, 1, 2)
        if await _accepts(world, job_id, f"state = '{target}', attempt = attempt + {step}", target, step=0)
    }
    legal = {target for source, target in legal_moves() if source is state} | {state}

    assert {(target, int((state, target) == (JobState.QUEUED, JobState.RUNNING))) for target in legal} == accepted


@pytest.mark.parametrize("state", JobState)
async def test_a_job_begins_scheduled_or_queued_and_as_nothing_else(world, state):
    job_id, _ = await _bring_to(world, state)

    accepted = await _accepts_insert(world, job_id, attempt=0)

    assert (state in ENTRY_STATES) == accepted


async def test_a_job_begins_with_no_attempt(world):
    job_id = await world.enqueue()

    assert not await _accepts_insert(world, job_id, attempt=1)


@pytest.mark.parametrize("change", ["UPDATE tenure.runs SET outcome = 'failed'", "DELETE FROM tenure.runs"])
async def test_a_run_record_is_never_changed(world, change):
    await world.settle(await world.running(), SUCCESS)

    with pytest.raises(psycopg.errors.IntegrityError, match="append-only"):
        await world.main.execute(change)


@pytest.mark.parametrize("column", ["lease_owner", "lease_token", "lease_expires_at"])
async def test_a_running_job_has_a_whole_lease_and_no_other_job_has_any_of_it(world, column):
    value = "clock_timestamp()" if column == "lease_expires_at" else "gen_random_uuid()"
    waiting = await world.enqueue(not_before=await world.now(hours=1))
    running = (await world.running()).fence.job_id

    assert not await _accepts(world, running, f"{column} = NULL", None)
    assert not await _accepts(world, waiting, f"{column} = {value}", None)


async def test_a_job_that_has_started_is_not_ended_by_its_start_deadline(world):
    claim = await world.running(start_deadline=await world.now(minutes=30))
    await world.settle(claim, RELEASE)

    expired = await jobs.expire(world.main, [KIND], now=await world.now(hours=1))

    assert expired == []
    assert await world.state(claim.fence.job_id) == JobState.QUEUED


async def test_a_promoted_or_released_job_goes_to_the_end_of_its_lane(world):
    first, second = await world.running(), await world.enqueue()
    await world.settle(first, RELEASE)

    order = [claim.fence.job_id for _ in range(2) for claim in await world.claim(1)]

    assert [second, first.fence.job_id] == order


# ---------------------------------------------------------------- how a job gets into a state, by legal moves only


async def _bring_to(world, state, event=None):
    """A job in the state, and the claim of its latest run (or one that never was)."""
    job = new_job(
        not_before=await world.now(hours=1) if state is JobState.SCHEDULED else None,
        start_deadline=await world.now(minutes=30),
        max_crashes=1 if JobEvent.QUARANTINE is event or state is JobState.QUARANTINED else 3,
    )
    await jobs.enqueue(world.main, [job])
    claim = _never_claimed(job)
    if state not in ENTRY_STATES and state is not JobState.CANCELLED:
        claim = await world.claim_one(job.id)
    if event is JobEvent.LAPSE_AGAIN and state is JobState.RUNNING:
        await world.reap()
        claim = await world.claim_one(job.id)
    match state:
        case JobState.RETRY_WAIT:
            await world.settle(claim, FAILURE)
        case JobState.SUCCEEDED:
            await world.settle(claim, SUCCESS)
        case JobState.DEAD:
            await world.settle(claim, FAILURE_FOR_GOOD)
        case JobState.QUARANTINED:
            await world.settle(claim, CRASH)
        case JobState.CANCELLED:
            await world.cancel(job.id)
    assert state == await world.state(job.id)
    return job.id, claim


def _never_claimed(job):
    return Claim(
        fence=Fence(job_id=job.id, attempt=0, lease_token=LeaseToken(uuid4())),
        tenant_id=job.tenant_id,
        queue=job.queue,
        kind=job.kind,
        args=job.args,
        lease_seconds=job.lease_seconds,
        failures=0,
        max_attempts=job.max_attempts,
        crashes=0,
        max_crashes=job.max_crashes,
    )


# ---------------------------------------------------------------- the statements of each event


async def _promote(world, job_id, claim):
    await jobs.promote(world.main, now=await world.now(hours=2))


async def _claim(world, job_id, claim):
    await world.claim()


def _settle(end):
    async def settle(world, job_id, claim):
        await world.settle(claim, end)

    return settle


async def _reap(world, job_id, claim):
    await world.reap()


async def _cancel(world, job_id, claim):
    """Asks; a running job then needs the worker's own report."""
    if (await world.job(job_id))["state"] != JobState.RUNNING:
        await world.cancel(job_id)
    await world.settle(claim, CANCELLED)


async def _cancel_and_lapse(world, job_id, claim):
    await world.cancel(job_id)
    await world.reap()


async def _expire(world, job_id, claim):
    await jobs.expire(world.main, [KIND], now=await world.now(hours=2))


async def _replay(world, job_id, claim):
    """No statement of the product yet: the move itself, guarded as SPEC 1.1 says."""
    await world.main.execute(
        "UPDATE tenure.jobs SET state = 'queued', finished_at = NULL "
        "WHERE id = %s AND state IN ('dead', 'quarantined')",
        [job_id],
    )


async def _crash_again(world, job_id, claim):
    """A second crash: the first was a lapse."""
    await world.settle(claim, CRASH)


_STATEMENTS = {
    JobEvent.PROMOTE: [_promote],
    JobEvent.CLAIM: [_claim],
    JobEvent.SUCCEED: [_settle(SUCCESS)],
    JobEvent.RETRY: [_settle(FAILURE)],
    JobEvent.FAIL: [_settle(FAILURE_FOR_GOOD)],
    JobEvent.RELEASE: [_settle(RELEASE)],
    JobEvent.LAPSE: [_reap, _settle(CRASH)],
    JobEvent.LAPSE_AGAIN: [_reap, _crash_again],
    JobEvent.QUARANTINE: [_reap, _settle(CRASH)],
    JobEvent.CANCEL: [_cancel, _cancel_and_lapse],
    JobEvent.EXPIRE: [_expire],
    JobEvent.REPLAY: [_replay],
}

_CONSISTENT = """
    lease_owner = CASE WHEN %(running)s THEN gen_random_uuid() END,
    lease_token = CASE WHEN %(running)s THEN gen_random_uuid() END,
    lease_expires_at = CASE WHEN %(running)s THEN clock_timestamp() END,
    finished_at = CASE WHEN %(terminal)s THEN clock_timestamp() END,
    not_before = clock_timestamp()
"""


async def _accepts(world, job_id, change, target, *, step=None):
    """Whether a raw UPDATE passes; all other columns are made to fit the target state, and it is undone."""
    values = {"job_id": job_id, "running": target is JobState.RUNNING, "terminal": target in TERMINAL}
    if target is not None:
        change = f"{change}, {_CONSISTENT}"
    if target is JobState.RUNNING and step is None:
        # So that the attempt is right where the move is a claim, and the move alone is judged.
        change += ", attempt = attempt + CASE WHEN state = 'queued' THEN 1 ELSE 0 END"
    try:
        async with world.main.transaction(force_rollback=True):
            await world.main.execute(f"UPDATE tenure.jobs SET {change} WHERE id = %(job_id)s", values)
    except psycopg.errors.IntegrityError:
        return False
    return True


async def _accepts_insert(world, job_id, *, attempt):
    """Whether a copy of the job could begin as it stands."""
    try:
        async with world.main.transaction(force_rollback=True):
            await world.main.execute(
                "INSERT INTO tenure.jobs SELECT (jsonb_populate_record(job, jsonb_build_object("
                "'id', gen_random_uuid(), 'attempt', %(attempt)s::int))).* FROM tenure.jobs AS job "
                "WHERE id = %(job_id)s",
                {"job_id": job_id, "attempt": attempt},
            )
    except psycopg.errors.IntegrityError:
        return False
    return True
