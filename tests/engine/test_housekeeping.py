"""What happens without a run: promotion, deadlines, wake-ups, the lanes' check, and who is told of an end."""

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine_parts import new_job, until

from tenure.core import limits
from tenure.core.ids import TenantId, WorkerId
from tenure.core.lifecycle import JobState
from tenure.engine import housekeeping, worker
from tenure.engine.events import FactName
from tenure.engine.handlers import Kinds
from tenure.store import jobs, queues

KIND = "script_task"


async def test_a_scheduled_job_starts_once_its_time_has_come(engine):
    soon = datetime.now(UTC) + timedelta(seconds=1)
    job_id = await engine.enqueue_job(new_job(kind=KIND, not_before=soon))
    scheduled = await engine.find(job_id)
    async with engine.worker():
        await engine.wait_ended(job_id)
    (record,) = await engine.records(job_id)

    assert JobState.SCHEDULED == scheduled.state
    assert soon <= record.queued_at <= record.claimed_at


async def test_a_retry_waits_for_its_backoff(engine):
    job_id = await engine.enqueue(KIND, then="fail")
    async with engine.worker():
        view = await engine.wait_ended(job_id)
    records = await engine.records(job_id)
    waits = [(later.queued_at - earlier.finished_at).total_seconds() for earlier, later in itertools.pairwise(records)]

    assert (JobState.DEAD, 3, 3) == (view.state, view.attempt, view.failures)
    assert [True, True] == [wait >= least * 0.8 for wait, least in zip(waits, (0.05, 0.1), strict=True)]


async def test_a_job_no_worker_took_in_time_is_dead_and_its_kind_is_told(engine):
    told = _tell_of_ends(engine)
    past = datetime.now(UTC) - timedelta(seconds=1)
    job_id = await engine.enqueue_job(new_job(kind=KIND, start_deadline=past))
    count = await housekeeping.expire_late(engine.database, engine.kinds, engine.facts.append)
    view = await engine.find(job_id)

    assert (1, JobState.DEAD, 0) == (count, view.state, view.attempt)
    assert [(JobState.DEAD, "start_deadline_passed")] == [(end.state, end.error_code) for end in told]
    assert FactName.JOB_EXPIRED in engine.names()


async def test_a_reaped_job_and_its_kind_are_told_of(engine):
    told = _tell_of_ends(engine)
    claim = await _claim(engine, lease_seconds=0.01)
    await asyncio.sleep(0.05)
    count = await housekeeping.reap_lapsed(engine.database, engine.kinds, engine.facts.append)

    assert 1 == count
    assert [(claim.fence.job_id, JobState.QUEUED, "lease_expired")] == [
        (end.job_id, end.state, end.error_code) for end in told
    ]
    assert FactName.LEASE_LAPSED in engine.names()


async def test_cancelling_a_waiting_job_tells_its_kind_and_asking_a_running_one_does_not(engine):
    told = _tell_of_ends(engine)
    running = await _claim(engine)
    waiting = await engine.enqueue(KIND)
    await engine.cancel(running.fence.job_id)
    await engine.cancel(waiting)

    assert [waiting] == [end.job_id for end in told]


async def test_an_end_its_kind_refuses_is_not_recorded_and_the_others_are(engine):
    async def refuse(connection, end):
        raise RuntimeError("cannot")

    engine.kinds = Kinds(replace(kind, on_end=refuse if kind.name == KIND else None) for kind in engine.kinds.values())
    refused, plain = await engine.enqueue(KIND), await engine.enqueue("script_thread")
    async with engine.worker(slots=2):
        view = await engine.wait_ended(plain)
        await until(lambda: FactName.SETTLE_FAILED in engine.names())
    (detail,) = {fact.detail for fact in engine.facts if fact.name is FactName.SETTLE_FAILED}

    assert JobState.SUCCEEDED == view.state
    assert JobState.RUNNING == (await engine.find(refused)).state
    assert [] == await engine.records(refused)
    assert "settle: RuntimeError: cannot" == detail


async def test_checking_lanes_mends_them_and_raises_an_alarm(engine):
    job_id = await engine.enqueue(KIND)
    await _claim(engine)
    async with engine.database.transaction() as connection:
        await connection.execute("UPDATE tenure.lanes SET backlogged = false, running = 7, head_seq = 1e9")
        await connection.execute(
            "UPDATE tenure.jobs SET state = 'queued', lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL"
            " WHERE id = %s",
            [job_id],
        )
    await housekeeping.check_lanes(engine.database, ["test"], engine.facts.append)

    assert {FactName.LANE_LOST_SIGHT, FactName.LANE_DRIFTED} == engine.names()
    assert [job_id] == [claim.fence.job_id for claim in await _claim_all(engine)]


async def test_checking_lanes_raises_no_alarm_for_arrivals_no_claim_has_seen(engine):
    await _claim(engine)
    await engine.enqueue(KIND)
    await engine.enqueue(KIND, tenant=TenantId("other"))
    await housekeeping.check_lanes(engine.database, ["test"], engine.facts.append)

    assert set() == engine.names()


async def test_a_ring_wakes_an_idle_worker(engine, monkeypatch):
    monkeypatch.setattr(limits, "POLL_SECONDS", 3_600.0)
    async with engine.worker():
        await engine.wait_ended(await engine.enqueue(KIND))
        later = await engine.wait_ended(await engine.enqueue(KIND))

    assert JobState.SUCCEEDED == later.state


async def test_with_every_doorbell_dead_polling_finds_the_work(engine, monkeypatch):
    async def deaf(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(worker, "hear_rings", deaf)
    monkeypatch.setattr(limits, "POLL_SECONDS", 0.5)
    async with engine.worker():
        await engine.wait_ended(await engine.enqueue(KIND))
        await asyncio.sleep(0.3)  # so that the worker has looked again and found nothing
        view = await engine.wait_ended(await engine.enqueue(KIND))

    assert JobState.SUCCEEDED == view.state


async def test_one_slot_serves_every_tenant_without_waiting_for_a_poll(engine, monkeypatch):
    """A lane that was just emptied is offered the next slot; it must pass it on at once."""
    monkeypatch.setattr(limits, "POLL_SECONDS", 3_600.0)
    waiting = [
        (await engine.enqueue(KIND, tenant=TenantId(tenant)), TenantId(tenant))
        for tenant in ("a", "b", "c", "d")
        for _ in range(1 if tenant in "ac" else 3)
    ]
    async with engine.worker():
        states = [(await engine.wait_ended(job_id, tenant)).state for job_id, tenant in waiting]

    assert {JobState.SUCCEEDED} == set(states)


async def test_workers_share_jobs_and_run_each_once(engine):
    ids = [await engine.enqueue(KIND) for _ in range(20)]
    async with engine.worker(slots=3), engine.worker(slots=3), engine.worker(slots=3):
        for job_id in ids:
            await engine.wait_ended(job_id)
    attempts = [(await engine.find(job_id)).attempt for job_id in ids]

    assert [1] * 20 == attempts
    assert 20 == len(await engine.rows("SELECT FROM tenure.runs"))


async def test_a_run_record_names_the_worker_and_its_times_are_in_order(engine):
    job_id = await engine.enqueue("script_process")
    async with engine.worker():
        await engine.wait_ended(job_id)
    (record,) = await engine.records(job_id)
    (row,) = await engine.rows("SELECT id::text, host FROM tenure.workers")

    assert (row["id"], row["host"]) == (record.worker_id, record.host)
    assert record.queued_at <= record.claimed_at <= record.finished_at
    assert record.peak_memory_bytes > 1_000_000


def _tell_of_ends(engine):
    told = []

    async def keep(connection, end):
        told.append(end)

    engine.kinds = Kinds(replace(kind, on_end=keep) for kind in engine.kinds.values())
    return told


async def _claim(engine, *, kind=KIND, lease_seconds=60.0):
    job_id = await engine.enqueue_job(new_job(kind=kind, lease_seconds=lease_seconds))
    return next(claim for claim in await _claim_all(engine) if claim.fence.job_id == job_id)


async def _claim_all(engine):
    async with engine.database.transaction() as connection:
        await queues.ensure(connection, "test")
    request = jobs.ClaimRequest(queue="test", worker_id=WorkerId(new_job().id), count=10, kinds=tuple(engine.kinds))
    async with engine.database.connection() as connection:
        return await jobs.claim(connection, request)
