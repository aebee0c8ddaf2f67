"""The worker on a real database, with real child processes."""

import pytest

from tenure.core.lifecycle import JobState
from tenure.core.run import RunOutcome
from tenure.store import runs
from tenure.testing.kinds import kinds


@pytest.mark.parametrize("kind", list(kinds()))
async def test_a_job_runs_and_its_result_is_recorded_once(engine, kind):
    job_id = await engine.enqueue(kind)
    async with engine.worker():
        view = await engine.wait_ended(job_id)
    record = (await _records(engine, job_id))[0]

    assert JobState.SUCCEEDED == view.state
    assert 1 == view.attempt
    assert RunOutcome.SUCCEEDED == record.outcome
    assert b'"attempt": 1' in record.result


@pytest.mark.parametrize("kind", list(kinds()))
async def test_a_failed_run_is_tried_again(engine, kind):
    job_id = await engine.enqueue(kind, then="fail_once")
    async with engine.worker():
        view = await engine.wait_ended(job_id)
    records = await _records(engine, job_id)

    assert JobState.SUCCEEDED == view.state
    assert [RunOutcome.FAILED, RunOutcome.SUCCEEDED] == [record.outcome for record in records]
    assert "query_timeout" == records[0].error_code
    assert "QueryTimeoutError" in records[0].traceback


async def test_a_permanent_error_is_not_tried_again(engine):
    job_id = await engine.enqueue(then="fail_for_good")
    async with engine.worker():
        view = await engine.wait_ended(job_id)

    assert (JobState.DEAD, 1, 1) == (view.state, view.attempt, view.failures)


@pytest.mark.parametrize(("then", "signal"), [("segfault", 11), ("exit", None)])
async def test_a_job_that_kills_its_process_is_quarantined_and_the_worker_lives(engine, then, signal):
    poison = await engine.enqueue(then=then)
    async with engine.worker():
        view = await engine.wait_ended(poison)
        healthy = await engine.wait_ended(await engine.enqueue())
    records = await _records(engine, poison)

    assert (JobState.QUARANTINED, 3, 0) == (view.state, view.crashes, view.failures)
    assert [signal] * 3 == [record.exit_signal for record in records]
    assert ["process_died"] * 3 == [record.error_code for record in records]
    assert JobState.SUCCEEDED == healthy.state


@pytest.mark.parametrize(
    ("then", "code"), [("huge", "result_too_large"), ("not_json", "result_not_json"), ("system_exit", "handler_failed")]
)
async def test_a_bad_result_fails_the_run_with_its_reason(engine, then, code):
    job_id = await engine.enqueue(then=then)
    async with engine.worker():
        await engine.wait_ended(job_id)
    records = await _records(engine, job_id)

    assert {code} == {record.error_code for record in records}


async def test_the_last_lines_a_child_printed_are_kept(engine):
    job_id = await engine.enqueue(then="shout")
    async with engine.worker():
        await engine.wait_ended(job_id)
    record = (await _records(engine, job_id))[0]

    assert record.log_tail.endswith("last words")
    assert len(record.log_tail) <= 16_000


async def _records(engine, job_id):
    async with engine.database.connection() as connection:
        return await runs.of_job(connection, (await engine.find(job_id)).tenant_id, job_id)
