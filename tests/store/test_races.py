"""Two and more real connections at once. Waits are seen through `pg_blocking_pids`, never slept for."""

import asyncio

import pytest
from store_world import FAILURE, HOST, KIND, POLICY, SUCCESS, TENANT, new_job, together

from tenure.core.lifecycle import JobState
from tenure.core.settlement import decide
from tenure.store import jobs, lanes, queues
from tenure.store.jobs import Beat


async def test_claimers_at_the_same_moment_get_each_job_once(world):
    await world.enqueue_many(25)
    claimers = [await world.connect() for _ in range(6)]
    answers = await together(*(world.claim(10, connection=claimer) for claimer in claimers))
    ids = [claim.fence.job_id for claims in answers for claim in claims]

    assert 25 == len(ids) == len(set(ids))
    assert max(map(len, answers)) <= 10


async def test_a_settle_under_way_beats_the_reaper(world):
    claim = await world.running()
    settler, reaper = await world.connect(), await world.connect()
    async with settler.transaction():
        await world.settle(claim, SUCCESS, connection=settler)
        reaped = await world.reap(connection=reaper)

    assert [] == reaped
    assert ["succeeded"] == await world.outcomes(claim.fence.job_id)


async def test_a_reap_under_way_beats_the_settle(world):
    claim = await world.running()
    settler, reaper = await world.connect(), await world.connect()
    async with reaper.transaction():
        reaped = await world.reap(connection=reaper)
        late = await world.started_and_blocked(settler, world.settle(claim, SUCCESS, connection=settler))

    assert [claim.fence.job_id] == [end.job_id for end in reaped]
    assert [] == await late
    assert JobState.QUEUED == await world.state(claim.fence.job_id)
    assert ["lease_expired"] == await world.outcomes(claim.fence.job_id)


async def test_a_reap_that_is_undone_lets_the_settle_win(world):
    claim = await world.running()
    settler, reaper = await world.connect(), await world.connect()
    async with reaper.transaction(force_rollback=True):
        await world.reap(connection=reaper)
        settle = await world.started_and_blocked(settler, world.settle(claim, SUCCESS, connection=settler))

    assert [JobState.SUCCEEDED] == [end.state for end in await settle]
    assert ["succeeded"] == await world.outcomes(claim.fence.job_id)


async def test_a_heartbeat_that_meets_a_reap_under_way_finds_the_lease_lost_afterwards(world):
    claim = await world.running()
    reaper = await world.connect()
    async with reaper.transaction():
        await world.reap(connection=reaper)
        meanwhile = await jobs.heartbeat(world.main, [claim.fence])
    afterwards = await jobs.heartbeat(world.main, [claim.fence])

    assert {claim.fence.job_id: Beat.HELD_UP} == meanwhile
    assert {} == afterwards


async def test_a_reaper_leaves_a_lease_that_is_being_extended(world):
    claim = await world.running(lease_seconds=60)
    worker, reaper = await world.connect(), await world.connect()
    after_expiry = await world.now(seconds=61)
    async with worker.transaction():
        await jobs.heartbeat(worker, [claim.fence], now=await world.now(seconds=50))
        meanwhile = await jobs.reap(reaper, [KIND], now=after_expiry)
    afterwards = await jobs.reap(reaper, [KIND], now=after_expiry)

    assert [] == meanwhile
    assert [] == afterwards
    assert JobState.RUNNING == await world.state(claim.fence.job_id)


async def test_reapers_at_the_same_moment_take_each_lease_once(world):
    await world.enqueue_many(30)
    claims = await world.claim()
    reapers = [await world.connect() for _ in range(4)]
    answers = await together(*(world.reap(connection=reaper) for reaper in reapers))
    ids = [end.job_id for ends in answers for end in ends]
    rest = await world.reap()

    assert {claim.fence.job_id for claim in claims} == {*ids, *(end.job_id for end in rest)}
    assert 30 == len(ids) + len(rest) == len(await world.rows("SELECT FROM tenure.runs"))
    assert 30 == (await world.one("SELECT sum(settled) AS settled FROM tenure.lane_events"))["settled"]


async def test_a_full_batch_does_not_hide_a_lapsed_lease(world):
    many = await world.enqueue_many(450)
    while await world.claim(1_000):
        pass
    reaped = [len(await world.reap()) for _ in range(4)]

    assert [200, 200, 50, 0] == reaped
    assert len(many) == len(await world.rows("SELECT FROM tenure.jobs WHERE state = 'queued'"))


async def test_a_row_a_reaper_cannot_have_does_not_hide_the_others(world):
    held, free = await world.running(), await world.running()
    holder = await world.connect()
    async with holder.transaction():
        await world.cancel(held.fence.job_id, connection=holder)
        reaped = await world.reap()

    assert [free.fence.job_id] == [end.job_id for end in reaped]


@pytest.mark.parametrize(
    ("end", "state"), [(SUCCESS, JobState.SUCCEEDED), (FAILURE, JobState.CANCELLED)], ids=["success", "failure"]
)
async def test_a_cancel_that_lands_first_stops_a_retry_but_not_a_success(world, end, state):
    claim = await world.running()
    canceller, settler = await world.connect(), await world.connect()
    async with canceller.transaction():
        await world.cancel(claim.fence.job_id, connection=canceller)
        settle = await world.started_and_blocked(settler, world.settle(claim, end, connection=settler))

    assert [state] == [end.state for end in await settle]
    assert [] == await world.claim()
    assert 1 == len(await world.runs(claim.fence.job_id))


async def test_a_cancel_that_lands_after_the_success_finds_nothing_to_cancel(world):
    claim = await world.running()
    canceller, settler = await world.connect(), await world.connect()
    async with settler.transaction():
        await world.settle(claim, SUCCESS, connection=settler)
        cancel = await world.started_and_blocked(canceller, world.cancel(claim.fence.job_id, connection=canceller))

    assert await cancel is None
    assert JobState.SUCCEEDED == await world.state(claim.fence.job_id)


async def test_a_cancel_that_meets_a_claim_under_way_asks_the_new_run_to_stop(world):
    job_id = await world.enqueue()
    claimer, canceller = await world.connect(), await world.connect()
    async with claimer.transaction():
        await world.claim(connection=claimer)
        cancel = await world.started_and_blocked(canceller, world.cancel(job_id, connection=canceller))
    end = await cancel

    assert JobState.RUNNING == end.state
    assert (await world.job(job_id))["cancel_requested_at"] is not None


async def test_a_job_whose_cancel_is_under_way_is_not_claimed_and_never_starts_after_it(world):
    job_id = await world.enqueue()
    canceller = await world.connect()
    async with canceller.transaction():
        await world.cancel(job_id, connection=canceller)
        meanwhile = await world.claim()
    afterwards = await world.claim()

    assert [] == meanwhile == afterwards
    assert (JobState.CANCELLED, 0) == (await world.state(job_id), (await world.job(job_id))["attempt"])


async def test_a_job_whose_cancel_was_undone_is_found_again(world):
    job_id = await world.enqueue()
    canceller = await world.connect()
    async with canceller.transaction(force_rollback=True):
        await world.cancel(job_id, connection=canceller)
        await world.claim()
    async with world.main.transaction():
        await queues.lock(world.main, "test")
        await lanes.fold(world.main, "test")
        lost_sight = await lanes.sweep(world.main, "test")

    assert [TENANT] == lost_sight
    assert job_id == (await world.claim_one()).fence.job_id


async def test_a_unique_key_lets_one_job_in_however_many_ask_at_once(world):
    asking = [await world.connect() for _ in range(8)]
    new = [new_job(unique_key="daily") for _ in asking]
    answers = await together(*(jobs.enqueue(connection, [job]) for connection, job in zip(asking, new, strict=True)))
    (winner,) = [job_id for answer in answers for job_id in answer]
    holders = {await jobs.holder(connection, TENANT, "daily") for connection in asking}

    assert {winner} == holders
    assert 1 == len(await world.rows("SELECT FROM tenure.jobs"))


@pytest.mark.parametrize("committed", [True, False])
async def test_a_second_asker_waits_for_the_first_to_decide(world, committed):
    first, second = await world.connect(), await world.connect()
    async with first.transaction(force_rollback=not committed):
        await world.enqueue(connection=first, unique_key="daily")
        job = new_job(unique_key="daily")
        waiting = await world.started_and_blocked(second, jobs.enqueue(second, [job]))

    assert ({} if committed else {job.id: JobState.QUEUED}) == await waiting


async def test_a_unique_key_is_free_again_once_its_job_has_ended(world):
    claim = await world.running(unique_key="daily")
    refused = await jobs.enqueue(world.main, [new_job(unique_key="daily")])
    await world.settle(claim, SUCCESS)
    accepted = await jobs.enqueue(world.main, [new_job(unique_key="daily")])

    assert ({}, 1) == (refused, len(accepted))


async def test_the_same_id_is_enqueued_once_however_often_it_is_sent(world):
    job = new_job()
    asking = [await world.connect() for _ in range(5)]
    answers = await together(*(jobs.enqueue(connection, [job]) for connection in asking))
    again = await jobs.enqueue(world.main, [job])

    assert [job.id] == [job_id for answer in answers for job_id in answer]
    assert {} == again
    assert 1 == len(await world.claim())


async def test_a_job_is_claimed_only_once_its_enqueue_is_committed(world):
    producer = await world.connect()
    async with producer.transaction():
        job_id = await world.enqueue(connection=producer)
        before = await world.claim()
    after = await world.claim()

    assert ([], [job_id]) == (before, [claim.fence.job_id for claim in after])


async def test_a_long_transaction_that_enqueues_and_cancels_blocks_nobody(world):
    running = await world.running()
    cancelled, ready = await world.enqueue(), await world.enqueue()
    holder = await world.connect()
    async with asyncio.timeout(20), holder.transaction():
        await world.enqueue(connection=holder)
        await world.cancel(cancelled, connection=holder)
        await world.cancel(running.fence.job_id, connection=holder)
        claims = await world.claim()
        await world.settle(claims[0], SUCCESS)
        beats = await jobs.heartbeat(world.main, [running.fence])
        reaped = await world.reap()

    assert [ready] == [claim.fence.job_id for claim in claims]
    assert {running.fence.job_id: Beat.HELD_UP} == beats
    assert [] == reaped


async def test_one_job_somebody_holds_does_not_cost_a_worker_its_other_leases(world):
    held, other = await world.running(), await world.running()
    holder = await world.connect()
    async with asyncio.timeout(20), holder.transaction():
        await world.cancel(held.fence.job_id, connection=holder)
        beats = await jobs.heartbeat(world.main, [held.fence, other.fence])

    assert {held.fence.job_id: Beat.HELD_UP, other.fence.job_id: Beat.EXTENDED} == beats


@pytest.mark.parametrize("change", ["FOR UPDATE", "FOR SHARE"])
async def test_a_heartbeat_held_up_past_the_expiry_does_not_revive_the_lease(world, change):
    """Nobody changes the row meanwhile, so PostgreSQL itself would not look at the expiry a second time."""
    claim = await world.running(lease_seconds=0.3)
    expires_at = (await world.job(claim.fence.job_id))["lease_expires_at"]
    holder = await world.connect()
    async with holder.transaction():
        await holder.execute(f"SELECT FROM tenure.jobs WHERE id = %s {change}", [claim.fence.job_id])
        async with asyncio.timeout(20):
            beats = []
            while await world.now() <= expires_at:
                beats.append(await jobs.heartbeat(world.main, [claim.fence]))
    late = await jobs.heartbeat(world.main, [claim.fence])

    assert {} == late
    assert expires_at == (await world.job(claim.fence.job_id))["lease_expires_at"]


async def test_settlers_of_the_same_runs_in_other_orders_do_not_deadlock(world):
    await world.enqueue_many(40)
    claims = await world.claim()
    settlers = [await world.connect() for _ in range(3)]
    orders = [claims, claims[::-1], claims[20:] + claims[:20]]
    answers = await together(*(_settle_batch(settler, order) for settler, order in zip(settlers, orders, strict=True)))

    assert 40 == sum(map(len, answers)) == len(await world.rows("SELECT FROM tenure.runs"))


async def _settle_batch(connection, claims):
    return await jobs.settle(connection, [decide(claim, SUCCESS, POLICY, chance=0) for claim in claims], host=HOST)
