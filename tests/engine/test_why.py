"""Every reason, from a real database, with its numbers."""

from datetime import timedelta
from uuid import UUID

import pytest
from operator_world import ACME, FAILURE, OTHER, QUEUE, THIRD, OperatorWorld

from tenure.core.errors import NotFoundError
from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.place import Reason
from tenure.core.run import RunOutcome
from tenure.core.tuning import LaneChanges, QueueChanges
from tenure.engine.tune import tune_lane, tune_queue
from tenure.engine.why import why_job, why_tenant
from tenure.store import jobs


@pytest.fixture
async def world(engine_settings, engine_database):
    async with OperatorWorld.opened(engine_settings) as world:
        yield world


def ask(world, job_id, tenant=ACME):
    return why_job(world.connection, tenant, job_id)


async def seconds_ago(world, job_id, seconds, *columns):
    moves = ", ".join(f"{column} = {column} - make_interval(secs => {seconds})" for column in columns)
    await world.execute(f"UPDATE tenure.jobs SET {moves} WHERE id = %s", job_id)


# ------------------------------------------------------------ waiting for a time


async def test_a_scheduled_job_is_not_yet_due(world):
    await world.hire()
    why = await ask(world, await world.enqueue_later(seconds=300))

    assert Reason.NOT_YET_DUE == why.reason
    assert 280 < why.due_in_seconds <= 300
    assert why.expected_start.earliest_seconds == why.due_in_seconds
    assert why.position is None
    assert why.sentence.startswith("It is scheduled, and becomes ready in ")


async def test_a_failed_job_waits_for_its_retry_and_says_why(world):
    await world.hire()
    job_id = await world.enqueue()
    (claim,) = await world.claim()
    await world.settle(claim, FAILURE)
    why = await ask(world, job_id)

    assert Reason.WAITS_FOR_RETRY == why.reason
    assert 40 < why.due_in_seconds <= 60
    assert why.sentence.startswith("Attempt 1 ended with some_error; it is tried again, and becomes ready in ")
    (attempt,) = why.timeline.attempts
    assert (RunOutcome.FAILED, "some_error", "the secret host") == (
        attempt.outcome,
        attempt.error_code,
        attempt.error_message,
    )


# ------------------------------------------------------------ switched off


async def test_a_paused_queue_holds_everything_up(world):
    await world.hire()
    job_id = await world.enqueue()
    await tune_queue(world.connection, "someone", QUEUE, QueueChanges(paused=True))
    why = await ask(world, job_id)

    assert (Reason.QUEUE_PAUSED, ()) == (why.reason, why.also)
    assert why.queue.paused
    assert why.expected_start is None


async def test_a_paused_tenant_is_told_apart_from_a_paused_queue(world):
    await world.hire()
    job_id = await world.enqueue()
    await tune_lane(world.connection, "someone", QUEUE, ACME, LaneChanges(paused=True))
    why = await ask(world, job_id)

    assert (Reason.TENANT_PAUSED, True, False) == (why.reason, why.lane.paused, why.queue.paused)
    assert why.expected_start is None


async def test_a_queue_that_no_worker_takes_is_noticed(world):
    job_id = await world.enqueue()
    await world.hire(queue="another")

    assert Reason.NO_WORKER == (await ask(world, job_id)).reason


@pytest.mark.parametrize("gone", ["last_beat_at = last_beat_at - interval '31 s'", "stopped_at = last_beat_at"])
async def test_a_worker_that_stopped_or_was_not_heard_of_does_not_count(world, gone):
    job_id = await world.enqueue()
    await world.hire(slots=3)
    assert (1, 3) == ((await ask(world, job_id)).queue.workers, (await ask(world, job_id)).queue.worker_slots)
    await world.execute(f"UPDATE tenure.workers SET {gone}")

    why = await ask(world, job_id)
    assert (Reason.NO_WORKER, 0, 0) == (why.reason, why.queue.workers, why.queue.worker_slots)


async def test_a_queue_nobody_ever_worked_on_is_explained_too(world):
    job_id = await world.enqueue(queue="never-seen")

    assert Reason.NO_WORKER == (await ask(world, job_id)).reason


async def test_everything_that_is_switched_off_is_named_at_once(world):
    job_id = await world.enqueue()
    await tune_queue(world.connection, "someone", QUEUE, QueueChanges(paused=True, slots=0))
    await tune_lane(world.connection, "someone", QUEUE, ACME, LaneChanges(paused=True))
    why = await ask(world, job_id)

    assert Reason.QUEUE_PAUSED == why.reason
    assert (Reason.TENANT_PAUSED, Reason.NO_WORKER, Reason.NO_SLOTS) == why.also


# ------------------------------------------------------------ whose turn it is


async def test_a_job_with_a_free_slot_is_next_and_starts_at_once(world):
    await world.hire(slots=2)
    why = await ask(world, await world.enqueue())

    assert (Reason.NEXT_IN_LINE, 1, 2) == (why.reason, why.position, why.queue.free)
    assert "There is a free slot for it; it starts with the next claim." == why.sentence
    assert (0.0, 5.0) == (why.expected_start.earliest_seconds, why.expected_start.latest_seconds)


async def test_the_next_job_starts_when_a_running_one_ends(world):
    await world.hire(slots=1)
    await world.set_lane(OTHER, estimate_seconds=100.0)
    await world.enqueue(OTHER)
    await world.claim()
    why = await ask(world, await world.enqueue())

    assert (Reason.NEXT_IN_LINE, 1, 0) == (why.reason, why.position, why.queue.free)
    assert "It is next; it starts with the first slot that becomes free." == why.sentence
    assert 85 < why.expected_start.earliest_seconds <= why.expected_start.latest_seconds <= 100
    assert (0.0, 0.5) == (why.lane.share_used, why.lane.share_due)


async def test_jobs_of_the_tenant_that_come_first_are_counted(world):
    await world.hire(slots=1)
    await world.set_lane(ACME, estimate_seconds=100.0)
    await world.enqueue()
    await world.claim()
    first, second = await world.enqueue(count=2)
    urgent = await world.enqueue(priority=-1)
    behind = await ask(world, second)

    assert (Reason.NEXT_IN_LINE, 1) == ((await ask(world, urgent)).reason, (await ask(world, urgent)).position)
    assert 2 == (await ask(world, first)).position
    assert (Reason.BEHIND_OWN_JOBS, 3) == (behind.reason, behind.position)
    assert "It is the tenant's turn, but 2 jobs of the tenant's own come first." == behind.sentence
    assert 280 < behind.expected_start.earliest_seconds <= 300  # the running one and two more, one after the other


async def test_tenants_that_are_owed_more_come_first(world):
    """ACME has had 100 s more than the others; both of them go first, and go on until they have caught up."""
    await world.hire(slots=1)
    await world.set_lane(ACME, virtual_time=110.0, estimate_seconds=20.0, backlogged=True)
    await world.set_lane(OTHER, virtual_time=10.0, estimate_seconds=50.0, backlogged=True)
    await world.set_lane(THIRD, virtual_time=10.0, weight=2.0, estimate_seconds=50.0, backlogged=True)
    await world.set_queue(floor=10.0)
    job_id = await world.enqueue()
    for tenant in (OTHER, THIRD):
        await world.enqueue(tenant, count=90)
    (running,) = await world.claim()
    why = await ask(world, job_id)

    assert (Reason.OTHERS_ARE_OWED_MORE, OTHER) == (why.reason, running.tenant_id)
    assert (2, 0, 1) == (why.queue.tenants_ahead, why.queue.free, why.queue.running)
    assert (0.0, 0.25) == (why.lane.share_used, why.lane.share_due)
    assert pytest.approx(100.0) == why.lane.lead_seconds
    assert "other" not in why.sentence
    assert 140 < why.expected_start.earliest_seconds <= 150  # the running one, and one of each
    assert 390 < why.expected_start.latest_seconds <= 400  # 50 s, 100 s * 2, one more each, and the running one


async def test_the_expected_start_holds_when_the_claims_are_played_to_it(world):
    await world.hire(slots=2)
    for tenant, start in ((ACME, 6.0), (OTHER, 0.0), (THIRD, 2.0)):
        await world.set_lane(tenant, virtual_time=start, estimate_seconds=1.0, backlogged=True)
        await world.enqueue(tenant, count=30)
    job_id = await world.enqueue()
    why = await ask(world, job_id)
    jobs_before = 0
    while job_id not in {claim.fence.job_id for claim in await world.claim()}:
        jobs_before += 1

    assert Reason.OTHERS_ARE_OWED_MORE == why.reason
    assert why.expected_start.earliest_seconds <= jobs_before / 2 <= why.expected_start.latest_seconds


async def test_a_tenant_at_its_cap_waits_while_no_slot_can_be_lent(world):
    await world.hire(slots=3)
    await world.set_lane(ACME, cap=1)
    await world.enqueue(ACME, count=2)
    await world.claim(1)
    job_id = (await world.rows("SELECT id FROM tenure.jobs WHERE state = 'queued'"))[0]["id"]
    assert Reason.NEXT_IN_LINE == (await ask(world, job_id)).reason  # it may borrow

    await tune_queue(world.connection, "someone", QUEUE, QueueChanges(slots=3, headroom=2))
    why = await ask(world, job_id)
    assert (Reason.TENANT_AT_CAP, 1, 1) == (why.reason, why.lane.running, why.lane.cap)
    assert "The tenant runs 1 job, its cap is 1, and there is no idle slot to borrow." == why.sentence
    assert [] == await world.claim(1)

    await tune_queue(world.connection, "someone", QUEUE, QueueChanges(headroom=1))
    assert Reason.NEXT_IN_LINE == (await ask(world, job_id)).reason
    assert 1 == len(await world.claim(1))


async def test_a_tenant_at_its_cap_waits_while_others_below_theirs_have_work(world):
    await world.hire(slots=2)
    await world.set_lane(ACME, cap=1)
    await world.enqueue(ACME, count=2)
    await world.claim(1)
    await world.enqueue(OTHER, count=5)
    await world.fold()
    job_id = (await world.rows("SELECT id FROM tenure.jobs WHERE state = 'queued' AND tenant_id = 'acme'"))[0]["id"]

    assert Reason.TENANT_AT_CAP == (await ask(world, job_id)).reason
    assert [OTHER] == [claim.tenant_id for claim in await world.claim(1)]


async def test_a_tenant_at_its_ceiling_waits_for_its_own_runs(world):
    await world.hire(slots=9)
    await world.set_lane(ACME, ceiling=2, estimate_seconds=50.0)
    await world.enqueue(ACME, count=3)
    await world.claim(2)
    job_id = (await world.rows("SELECT id FROM tenure.jobs WHERE state = 'queued'"))[0]["id"]
    why = await ask(world, job_id)

    assert (Reason.TENANT_AT_CEILING, 2, 2) == (why.reason, why.lane.running, why.lane.ceiling)
    assert "The tenant runs 2 jobs, which is its ceiling; the next starts when one of them ends." == why.sentence
    assert 1.0 == why.lane.share_used
    assert 20 < why.expected_start.earliest_seconds < 51
    await tune_lane(world.connection, "someone", QUEUE, ACME, LaneChanges(ceiling=0))
    assert (await ask(world, job_id)).expected_start is None


async def test_running_is_counted_from_the_leases_and_not_from_counters(world):
    """A settled run has left its slot at once, though no claim has folded it yet."""
    await world.hire(slots=1)
    await world.enqueue(count=2)
    (claim,) = await world.claim()
    await world.settle(claim)
    job_id = (await world.rows("SELECT id FROM tenure.jobs WHERE state = 'queued'"))[0]["id"]
    why = await ask(world, job_id)

    assert (Reason.NEXT_IN_LINE, 0, 1) == (why.reason, why.lane.running, why.queue.free)


# ------------------------------------------------------------ running and ended


async def test_a_running_job_names_its_worker_and_what_is_left_of_the_lease(world):
    await world.hire()
    job_id = await world.enqueue()
    await world.claim()
    await seconds_ago(world, job_id, 20, "queued_at", "created_at")
    await seconds_ago(world, job_id, 5, "claimed_at")
    why = await ask(world, job_id)

    assert (Reason.RUNNING, "worker-host", 4711) == (why.reason, why.owner.host, why.owner.pid)
    assert 40 < why.owner.lease_seconds_left <= 60
    assert (None, None, None) == (why.lane, why.queue, why.position)
    assert pytest.approx(15, abs=8) == why.timeline.waited_seconds
    assert pytest.approx(5, abs=8) == why.timeline.ran_seconds
    assert why.sentence.startswith("It runs, attempt 1, for ")


async def test_a_cancel_request_and_a_lapsed_lease_are_told_apart(world):
    await world.hire()
    job_id = await world.enqueue()
    await world.claim()
    await jobs.cancel(world.connection, ACME, job_id)
    assert Reason.CANCEL_REQUESTED == (await ask(world, job_id)).reason

    await seconds_ago(world, job_id, 90, "lease_expires_at")
    why = await ask(world, job_id)
    assert Reason.LEASE_LAPSED == why.reason
    assert why.owner.lease_seconds_left < 0


async def test_an_ended_job_tells_where_its_time_went(world):
    """One hour in line, a failure after two minutes, a minute until the retry, then half an hour of running."""
    await world.hire()
    job_id = await world.enqueue()
    await seconds_ago(world, job_id, 3600 + 120, "created_at", "queued_at")
    (claim,) = await world.claim()
    await seconds_ago(world, job_id, 120, "claimed_at")
    await world.settle(claim, FAILURE)
    await jobs.promote(world.connection, now=await world.now() + timedelta(minutes=1))
    (claim,) = await world.claim()
    await world.execute("UPDATE tenure.jobs SET claimed_at = queued_at WHERE id = %s", job_id)
    await world.settle(claim, now=await world.now() + timedelta(minutes=31))
    why = await ask(world, job_id)
    first, second = why.timeline.attempts

    assert (Reason.ENDED, JobState.SUCCEEDED) == (why.reason, why.job.state)
    assert [3600, 120] == pytest.approx([first.waited_seconds, first.ran_seconds], abs=8)
    assert [60, 0, 1800] == pytest.approx([second.delayed_seconds, second.waited_seconds, second.ran_seconds], abs=8)
    timeline = why.timeline
    assert timeline.total_seconds == pytest.approx(
        timeline.waited_seconds + timeline.delayed_seconds + timeline.ran_seconds
    )
    assert [3600, 60, 1920] == pytest.approx(
        [timeline.waited_seconds, timeline.delayed_seconds, timeline.ran_seconds], abs=5
    )
    assert why.sentence.startswith("Succeeded after 1 h 33 min: 1 h")
    assert why.sentence.endswith("running in 2 attempts, 1 min until it was ready.")


async def test_a_job_cancelled_in_line_spent_its_time_there(world):
    job_id = await world.enqueue()
    await seconds_ago(world, job_id, 50, "created_at", "queued_at")
    await jobs.cancel(world.connection, ACME, job_id)
    why = await ask(world, job_id)

    assert Reason.ENDED == why.reason
    assert pytest.approx(50, abs=8) == why.timeline.waited_seconds
    assert why.sentence.startswith("Cancelled after 5")


# ------------------------------------------------------------ who may ask, and what it costs


async def test_another_tenants_job_is_not_found_and_an_operator_finds_it(world):
    job_id = await world.enqueue(OTHER)
    for tenant, unknown in ((ACME, job_id), (OTHER, JobId(UUID(int=7)))):
        with pytest.raises(NotFoundError, match="no such job"):
            await ask(world, unknown, tenant)

    assert OTHER == (await ask(world, job_id, None)).job.tenant_id


async def test_a_tenant_is_explained_by_its_first_job(world):
    await world.hire(slots=1)
    await world.enqueue(count=3)
    await world.claim()
    await world.enqueue(OTHER)
    await world.fold()
    acme, other = [await why_tenant(world.connection, QUEUE, tenant) for tenant in (ACME, OTHER)]

    assert (2, 1) == (acme.waiting, acme.lane.running)
    assert (Reason.OTHERS_ARE_OWED_MORE, Reason.NEXT_IN_LINE) == (acme.reason, other.reason)
    await world.execute("UPDATE tenure.queues SET paused = true")
    assert Reason.QUEUE_PAUSED == (await why_tenant(world.connection, QUEUE, ACME)).reason


async def test_a_tenant_with_nothing_in_line_runs_or_is_idle(world):
    await world.hire(slots=1)
    await world.enqueue()
    (claim,) = await world.claim()
    assert Reason.RUNNING == (await why_tenant(world.connection, QUEUE, ACME)).reason

    await world.settle(claim)
    idle = await why_tenant(world.connection, QUEUE, ACME)
    assert (Reason.NOTHING_WAITS, 0, None) == (idle.reason, idle.waiting, idle.expected_start)


@pytest.mark.parametrize(("queue", "tenant"), [(QUEUE, "nobody"), ("nowhere", ACME), ("a\x00", ACME), (QUEUE, "")])
async def test_a_tenant_or_queue_that_is_not_there_is_not_found(world, queue, tenant):
    with pytest.raises(NotFoundError):
        await why_tenant(world.connection, queue, TenantId(tenant))


async def test_counting_stops_at_its_bound(world, monkeypatch):
    monkeypatch.setattr("tenure.core.limits.WAITING_COUNT_MAX", 5)
    *_, last = await world.enqueue(count=9)

    assert 6 == (await ask(world, last)).position
    assert 5 == (await why_tenant(world.connection, QUEUE, ACME)).waiting
