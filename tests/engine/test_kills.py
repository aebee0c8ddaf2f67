"""Children, workers and connections are killed and stopped; the jobs go on, and each run is recorded once."""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from engine_parts import is_alive, new_job, noted, until

from tenure.core.lifecycle import JobState
from tenure.engine.events import FactName
from tenure.store import jobs

LEASE_SECONDS = 2.0
PROCESS = "rough_process"


async def test_a_killed_child_is_replaced_and_the_job_tried_again(rough, tmp_path):
    job_id = await rough.enqueue(PROCESS, does="hang", note=str(tmp_path / "pid"))
    async with rough.worker():
        (child,) = await noted(tmp_path / "pid")
        os.kill(child, signal.SIGKILL)
        view = await rough.wait_ended(job_id)
    first, second = await rough.records(job_id)

    assert (JobState.SUCCEEDED, 2, 1, 0) == (view.state, view.attempt, view.crashes, view.failures)
    assert ("failed", "process_died", 9) == (first.outcome, first.error_code, first.exit_signal)
    assert ("succeeded", b'"second attempt"') == (second.outcome, second.result)


async def test_a_killed_workers_job_is_run_by_another_and_its_child_dies_with_it(rough, tmp_path):
    job_id = await rough.enqueue(PROCESS, does="hang", note=str(tmp_path / "pid"))
    async with rough.lone_worker() as lone:
        (child,) = await noted(tmp_path / "pid")
        lone.signal(signal.SIGKILL)
        killed_at = time.monotonic()
        await until(lambda: not is_alive(child))
        async with rough.worker():
            view = await rough.wait_ended(job_id)
    seconds = time.monotonic() - killed_at

    assert (JobState.SUCCEEDED, 2, 1) == (view.state, view.attempt, view.crashes)
    assert ["lease_expired", "succeeded"] == await rough.outcomes(job_id)
    assert seconds < LEASE_SECONDS + 5 + 15  # the last is for a busy machine that starts a worker meanwhile


@pytest.mark.parametrize("child_seconds", [1.0, 60.0], ids=["its child ended meanwhile", "its child still runs"])
async def test_a_worker_stopped_beyond_its_lease_writes_nothing_when_it_goes_on(rough, tmp_path, child_seconds):
    job_id = await rough.enqueue(PROCESS, does="hang", note=str(tmp_path / "pid"), seconds=child_seconds)
    async with rough.lone_worker() as lone:
        (child,) = await noted(tmp_path / "pid")
        lone.signal(signal.SIGSTOP)
        async with rough.worker():
            await rough.wait_ended(job_id)
        before = await rough.rows("SELECT * FROM tenure.runs")
        lone.signal(signal.SIGCONT)
        await lone.wait_said(FactName.RUN_STALE)
        await until(lambda: not is_alive(child) or child_seconds < LEASE_SECONDS)
        view = await rough.find(job_id)

        assert lone.process.returncode is None
    assert (JobState.SUCCEEDED, 2) == (view.state, view.attempt)
    assert ["lease_expired", "succeeded"] == await rough.outcomes(job_id)
    assert before == await rough.rows("SELECT * FROM tenure.runs")


async def test_a_run_whose_lease_was_taken_away_is_stopped_at_the_next_heartbeat(rough, tmp_path):
    """Long before the worker's own clock would tell."""
    args = msgspec.json.encode({"does": "hang", "note": str(tmp_path / "pid")})
    job_id = await rough.enqueue_job(new_job(kind=PROCESS, args=args, lease_seconds=600.0))
    async with rough.worker():
        (child,) = await noted(tmp_path / "pid")
        async with rough.database.transaction() as connection:
            await jobs.reap(connection, [PROCESS], now=datetime.now(UTC) + timedelta(hours=1))
        view = await rough.wait_ended(job_id)
        await until(lambda: not is_alive(child))

    assert (JobState.SUCCEEDED, 2) == (view.state, view.attempt)
    assert ["lease_expired", "succeeded"] == await rough.outcomes(job_id)
    assert {FactName.LEASE_LOST, FactName.RUN_STALE} <= rough.names()


async def test_a_worker_goes_on_after_all_its_connections_were_cut(rough):
    job_id = await rough.enqueue(PROCESS, does="burn", seconds=4.0)
    async with rough.worker():
        await rough.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
        for _ in range(3):
            await _cut_connections(rough)
            await asyncio.sleep(0.3)
        view = await rough.wait_ended(job_id)
        later = await rough.wait_ended(await rough.enqueue(PROCESS, does="burn", seconds=0.0))

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)
    assert JobState.SUCCEEDED == later.state
    assert FactName.DATABASE_AWAY in rough.names()


@pytest.mark.parametrize("does", ["die_leaving_grandchild", "hang_with_grandchild"])
async def test_what_a_child_started_dies_with_it(rough, tmp_path, does):
    job_id = await rough.enqueue(PROCESS, does=does, note=str(tmp_path / "pids"))
    async with rough.worker():
        child, grandchild = await noted(tmp_path / "pids")
        if does == "hang_with_grandchild":
            os.kill(child, signal.SIGKILL)
        await rough.wait_until(job_id, lambda view: view.crashes > 0)
        await until(lambda: not is_alive(grandchild))
        await rough.cancel(job_id)
    first = (await rough.records(job_id))[0]

    assert "process_died" == first.error_code


@pytest.mark.parametrize(("does", "outcome"), [("leave_daemon", "succeeded"), ("die_leaving_daemon", "failed")])
async def test_a_daemon_left_behind_that_holds_the_pipes_does_not_keep_the_run_from_ending(
    rough, tmp_path, does, outcome
):
    job_id = await rough.enqueue(PROCESS, does=does, note=str(tmp_path / "pid"))
    async with rough.worker():
        (daemon,) = await noted(tmp_path / "pid")
        try:
            await rough.wait_until(
                job_id, lambda view: view.state in (JobState.SUCCEEDED, JobState.QUEUED) or view.crashes
            )
            await rough.cancel(job_id)
        finally:
            os.kill(daemon, signal.SIGKILL)

    assert outcome == (await rough.outcomes(job_id))[0]


async def test_a_run_beyond_its_time_limit_is_killed_and_fails(engine):
    """The shipped kinds may take five seconds."""
    job_id = await engine.enqueue(seconds=60, then="ignore_cancel")
    async with engine.worker():
        view = await engine.wait_until(job_id, lambda view: view.failures > 0)
        await engine.cancel(job_id)
    first = (await engine.records(job_id))[0]

    assert 0 == view.crashes
    assert ("failed", "time_limit") == (first.outcome, first.error_code)


async def test_a_child_that_writes_garbage_on_its_channel_ends_only_its_own_run(rough):
    bad = await rough.enqueue(PROCESS, does="write_garbage")
    async with rough.worker():
        await rough.wait_until(bad, lambda view: view.crashes > 0)
        await rough.cancel(bad)
        good = await rough.wait_ended(await rough.enqueue(PROCESS, does="burn", seconds=0.0))

    assert JobState.SUCCEEDED == good.state


async def test_a_checkpoint_is_handed_to_the_next_attempt(rough):
    job_id = await rough.enqueue(PROCESS, does="checkpoint_then_die")
    async with rough.worker():
        view = await rough.wait_ended(job_id)
    result = (await rough.records(job_id))[-1].result

    assert (JobState.SUCCEEDED, 2) == (view.state, view.attempt)
    assert b'{"attempt": 2, "resumed": "{\\"page\\": 7}"}' == result


async def test_a_checkpoint_taken_at_the_last_moment_is_written_before_the_run_is_handed_back(rough, tmp_path):
    job_id = await rough.enqueue(PROCESS, does="checkpoint_then_stop", note=str(tmp_path / "pid"))
    async with rough.worker(shutdown_seconds=0.0):
        await noted(tmp_path / "pid")
    handed_back = await rough.find(job_id)
    async with rough.worker():
        await rough.wait_ended(job_id)

    assert (JobState.QUEUED, 1) == (handed_back.state, handed_back.releases)
    assert ["released", "succeeded"] == await rough.outcomes(job_id)
    assert b'{"resumed": "{\\"page\\": 9}"}' == (await rough.records(job_id))[-1].result


async def _cut_connections(engine):
    """Every connection of the worker: its pool, its heart, its doorbell; and the one that asks for it last."""
    await engine.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE 'tenure%%' AND pid <> pg_backend_pid() AND %s",
        True,
    )
