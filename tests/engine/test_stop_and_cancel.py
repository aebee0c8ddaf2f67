"""Runs are asked to stop: by a cancel, by the worker's end, twice; and what is recorded of it."""

import asyncio
import threading

import pytest
from engine_parts import is_alive, noted, until

from tenure.core.lifecycle import JobState
from tenure.engine.events import FactName
from tenure.engine.handlers import Isolation
from tenure.engine.worker import Worker, WorkerOptions


@pytest.mark.parametrize("isolation", Isolation)
async def test_a_cancelled_run_stops_at_its_next_safe_point(engine, isolation):
    job_id = await engine.enqueue(f"script_{isolation}", seconds=60)
    async with engine.worker():
        await engine.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
        await engine.cancel(job_id)
        view = await engine.wait_ended(job_id)

    assert (JobState.CANCELLED, 1, 0, 0) == (view.state, view.attempt, view.failures, view.crashes)
    assert ["cancelled"] == await engine.outcomes(job_id)


async def test_a_cancelled_run_that_does_not_listen_is_killed_after_its_grace(rough, tmp_path):
    job_id = await rough.enqueue("rough_process", does="hang", note=str(tmp_path / "pid"))
    async with rough.worker():
        (child,) = await noted(tmp_path / "pid")
        await rough.cancel(job_id)
        view = await rough.wait_ended(job_id)
        await until(lambda: not is_alive(child))
    (record,) = await rough.records(job_id)

    assert (JobState.CANCELLED, 0) == (view.state, view.crashes)
    assert ("cancelled", 9) == (record.outcome, record.exit_signal)


async def test_a_run_that_ends_well_before_it_hears_of_the_cancel_has_succeeded(engine):
    job_id = await engine.enqueue(seconds=0.5, then="ignore_cancel")
    async with engine.worker():
        await engine.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
        await engine.cancel(job_id)
        view = await engine.wait_ended(job_id)

    assert JobState.SUCCEEDED == view.state
    assert view.cancel_requested_at is not None


async def test_a_waiting_job_is_cancelled_at_once_and_never_starts(engine):
    job_id = await engine.enqueue()
    await engine.cancel(job_id)
    async with engine.worker():
        await engine.wait_ended(await engine.enqueue())
    view = await engine.find(job_id)

    assert (JobState.CANCELLED, 0) == (view.state, view.attempt)


async def test_a_stopping_worker_lets_short_runs_end(engine):
    job_id = await engine.enqueue(seconds=0.5)
    async with engine.worker(shutdown_seconds=30):
        await engine.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
    view = await engine.find(job_id)

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)


@pytest.mark.parametrize("isolation", Isolation)
async def test_a_stopping_worker_hands_long_runs_back_and_no_budget_is_used(engine, isolation):
    job_id = await engine.enqueue(f"script_{isolation}", seconds=4)
    for attempt in (1, 2):
        async with engine.worker(shutdown_seconds=0.0):
            await engine.wait_until(job_id, lambda view, now=attempt: view.attempt == now)
    handed_back = await engine.find(job_id)

    assert (JobState.QUEUED, 2, 2, 0, 0) == (
        handed_back.state,
        handed_back.attempt,
        handed_back.releases,
        handed_back.failures,
        handed_back.crashes,
    )
    assert ["released", "released"] == await engine.outcomes(job_id)


async def test_a_second_stop_ends_at_once(rough, tmp_path):
    job_id = await rough.enqueue("rough_process", does="hang", note=str(tmp_path / "pid"))
    async with asyncio.timeout(30), rough.worker(shutdown_seconds=3_600) as worker:
        (child,) = await noted(tmp_path / "pid")
        worker.stop()  # the context asks a second time
    view = await rough.find(job_id)

    assert (JobState.QUEUED, 1) == (view.state, view.releases)
    assert not is_alive(child)


async def test_leases_are_kept_while_a_stopping_worker_waits_for_its_runs(engine):
    """Longer than the lease of two seconds."""
    job_id = await engine.enqueue(seconds=4)
    async with engine.worker(shutdown_seconds=60):
        await engine.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
    view = await engine.find(job_id)

    assert (JobState.SUCCEEDED, 1) == (view.state, view.attempt)


async def test_a_worker_that_ends_by_an_error_leaves_neither_heart_nor_child_behind(rough, tmp_path):
    job_id = await rough.enqueue("rough_process", does="hang", note=str(tmp_path / "pid"))
    worker = Worker(
        rough.database, rough.kinds, WorkerOptions(queues=("test",), factory=rough.factory), rough.facts.append
    )
    task = asyncio.create_task(worker.run())
    (child,) = await noted(tmp_path / "pid")
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert "tenure-heart" not in {thread.name for thread in threading.enumerate()}
    assert not is_alive(child)
    assert 1 == (await rough.find(job_id)).attempt


async def test_a_stopped_worker_says_so(engine):
    async with engine.worker():
        await engine.wait_ended(await engine.enqueue())
    (row,) = await engine.rows("SELECT stopped_at FROM tenure.workers")

    assert row["stopped_at"] is not None
    assert {FactName.WORKER_STARTED, FactName.WORKER_STOPPING, FactName.WORKER_STOPPED} <= engine.names()


async def test_a_coroutine_that_swallows_its_cancellation_is_left_behind(engine):
    job_id = await engine.enqueue("script_task", seconds=4, then="swallow_cancel")
    async with engine.worker(slots=1):
        await engine.wait_until(job_id, lambda view: view.state is JobState.RUNNING)
        await engine.cancel(job_id)
        cancelled = await engine.wait_ended(job_id)
        healthy = await engine.wait_ended(await engine.enqueue("script_task"))

    assert (JobState.CANCELLED, JobState.SUCCEEDED) == (cancelled.state, healthy.state)
