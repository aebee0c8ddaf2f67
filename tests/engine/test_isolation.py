"""What handlers do to their process stays theirs: heartbeats go on, the worker lives, the record tells the cause."""

import asyncio

import pytest

from tenure.core.lifecycle import JobState
from tenure.engine.events import FactName

ALL = ["rough_task", "rough_thread", "rough_process"]


@pytest.mark.parametrize(("kind", "does"), [("rough_thread", "burn"), ("rough_process", "hold_gil")])
async def test_heartbeats_go_on_beyond_the_lease_whatever_the_handler_holds(rough, kind, does):
    job_id = await rough.enqueue(kind, does=does, seconds=4.0)
    async with rough.worker():
        view = await rough.wait_ended(job_id)

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)
    assert not {FactName.LEASE_LOST, FactName.LEASE_LAPSED} & rough.names()


async def test_a_busy_event_loop_does_not_stop_heartbeats(rough):
    """A task handler that blocks the worker's own loop for longer than the lease."""
    job_id = await rough.enqueue("rough_task", does="burn", seconds=4.0)
    async with rough.worker():
        view = await rough.wait_ended(job_id)

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("does", "code"),
    [
        ("exit", "handler_failed"),
        ("return_nul", "result_not_json"),
        ("return_depth", "result_not_json"),
        ("raise_surrogate", "handler_failed"),
        ("checkpoint_text", "invalid_input"),
        ("checkpoint_nul", "invalid_input"),
        ("checkpoint_huge", "invalid_input"),
    ],
)
async def test_what_the_database_could_not_keep_fails_the_run_with_its_reason(rough, kind, does, code):
    job_id = await rough.enqueue(kind, does=does)
    async with rough.worker():
        view = await rough.wait_until(job_id, lambda view: view.failures > 0)
        await rough.cancel(job_id)
        healthy = await rough.wait_ended(await rough.enqueue(kind, does="burn", seconds=0.0))
    first = (await rough.records(job_id))[0]

    assert (0, code) == (view.crashes, first.error_code)
    assert JobState.SUCCEEDED == healthy.state


@pytest.mark.parametrize("kind", ALL)
async def test_a_backslash_before_the_letters_of_a_nul_is_not_a_nul(rough, kind):
    job_id = await rough.enqueue(kind, does="return_backslash")
    async with rough.worker():
        await rough.wait_ended(job_id)

    assert rb'{"text": "a\\u0000b"}' == (await rough.records(job_id))[0].result


async def test_one_job_somebody_holds_does_not_cost_the_worker_its_other_runs(rough):
    """A transaction that cancels a running job and stays open for longer than the lease."""
    held = await rough.enqueue("rough_process", does="burn", seconds=60)
    other = await rough.enqueue("rough_process", does="burn", seconds=5)
    async with rough.worker(slots=2):
        for job_id in (held, other):
            await rough.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
        async with rough.database.transaction() as connection:
            await connection.execute(
                "UPDATE tenure.jobs SET cancel_requested_at = clock_timestamp() WHERE id = %s", [held]
            )
            view = await rough.wait_ended(other)
            lost_meanwhile = {fact.job_id for fact in rough.facts if fact.name is FactName.LEASE_LOST}
        ended = await rough.wait_ended(held)

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)
    assert JobState.CANCELLED == ended.state
    assert {held} == lost_meanwhile


async def test_slots_run_at_the_same_time(rough):
    ids = [await rough.enqueue("rough_process", does="hold_gil", seconds=1.0) for _ in range(3)]
    async with asyncio.timeout(60), rough.worker(slots=3):
        for job_id in ids:
            await rough.wait_ended(job_id)
    records = [(await rough.records(job_id))[0] for job_id in ids]

    assert max(record.claimed_at for record in records) < min(record.finished_at for record in records)
