"""Lanes: accounts of worker time, and accelerators that no job depends on to be found."""

import pytest
from store_world import CRASH, FAILURE, QUEUE, RELEASE, SUCCESS, TENANT

from tenure.core.ids import TenantId
from tenure.core.lifecycle import JobState
from tenure.store import jobs, lanes, queues

A, B = TenantId("a"), TenantId("b")


async def test_a_tenants_first_job_starts_at_the_floor(world):
    await world.set_queue(floor=500.0)
    await world.enqueue()
    await _fold(world)

    assert 500.0 == (await world.lane())["virtual_time"]


async def test_a_lane_that_was_idle_wakes_at_the_floor_and_keeps_a_debt(world):
    await world.set_queue(floor=500.0)
    await world.set_lane("a", virtual_time=3.0)
    await world.set_lane("b", virtual_time=900.0)
    for tenant in (A, B):
        await world.enqueue(tenant_id=tenant)
    await _fold(world)

    assert [500.0, 900.0] == [(await world.lane(tenant))["virtual_time"] for tenant in (A, B)]


async def test_a_lane_with_work_that_waits_its_turn_is_not_pushed_to_the_floor(world):
    await world.set_queue(floor=500.0)
    await world.set_lane(virtual_time=3.0, backlogged=True)
    await world.enqueue()
    await _fold(world)

    assert 3.0 == (await world.lane())["virtual_time"]


async def test_a_newcomer_is_served_among_those_who_were_served_long_before(world):
    await world.set_lane("old", virtual_time=0.0)
    await world.enqueue_many(40, tenant_id=TenantId("old"))
    for claim in await world.claim(20):
        await world.settle(claim, SUCCESS)
    await world.enqueue_many(20, tenant_id=TenantId("new"))
    tenants = [claim.tenant_id for claim in await world.claim(10)]

    assert tenants.count("new") >= 1


async def test_a_lane_at_its_cap_does_not_hold_the_floor_down(world):
    """It stands still while others are served; a waking lane must not get that time as credit."""
    await world.set_lane("stuck", virtual_time=1.0, cap=1, running=1, backlogged=True)
    await world.set_lane("busy", virtual_time=1_000.0, cap=50)
    await world.set_queue(slots=30, running=1)
    await world.enqueue_many(60, tenant_id=TenantId("busy"))
    await world.claim(10)
    await world.enqueue_many(30, tenant_id=TenantId("waking"))
    await _fold(world)

    assert 1_000.0 == (await world.lane("waking"))["virtual_time"]


async def test_the_queues_floor_is_that_of_lanes_below_their_caps_while_there_are_any(world):
    await world.set_lane("stuck", virtual_time=1.0, cap=1, running=1, backlogged=True)
    await world.set_lane("busy", virtual_time=1_000.0, cap=50)
    await world.set_queue(slots=30, running=1)
    await world.enqueue_many(20, tenant_id=TenantId("busy"))
    await world.claim(10)

    assert 1_010.0 == (await world.one("SELECT floor FROM tenure.queues"))["floor"]


async def test_a_newcomer_does_not_wait_for_what_the_others_were_charged_too_much(world):
    """Runs under way are charged by estimate; once they end sooner, the newcomer must not stand behind by that."""
    await world.set_lane("old", estimate_seconds=60.0)
    await world.enqueue_many(100, tenant_id=TenantId("old"))
    under_way = await world.claim(10)
    await world.enqueue_many(5, tenant_id=TenantId("new"))
    await _fold(world)
    for claim in under_way:
        await _end_after(world, claim, SUCCESS, seconds=1.0)
    tenants = [claim.tenant_id for claim in await world.claim(8)]

    assert tenants.count("new") >= 3


async def test_slots_a_lane_had_no_jobs_for_do_not_lift_the_floor(world):
    await world.set_lane(estimate_seconds=60.0)
    await world.enqueue()
    await world.claim(100)

    assert 0.0 == (await world.one("SELECT floor FROM tenure.queues"))["floor"]


async def test_a_claim_charges_the_estimate_and_the_end_corrects_it_to_what_it_took(world):
    await world.set_lane(weight=2.0, estimate_seconds=10.0)
    claim = await world.running()
    charged = (await world.lane())["virtual_time"]
    await _end_after(world, claim, SUCCESS, seconds=4.0)
    await world.set_lane(backlogged=True)
    await _fold(world)

    assert 5.0 == charged
    # Four seconds of the pretended past at weight 2, and what this machine took besides.
    assert 2.0 <= (await world.lane())["virtual_time"] < charged


@pytest.mark.parametrize(
    "end", [SUCCESS, FAILURE, CRASH, RELEASE, None], ids=["success", "failure", "crash", "release", "reap"]
)
async def test_every_end_corrects_the_charge_and_frees_the_slot(world, end):
    await world.set_lane(estimate_seconds=100.0)
    claim = await world.running()
    await _end_after(world, claim, end, seconds=30.0)
    await world.set_lane(backlogged=True)
    await _fold(world)
    lane = await world.lane()

    assert pytest.approx(30.0, abs=2.0) == lane["virtual_time"]
    assert (0, 0) == (lane["running"], (await world.one("SELECT running FROM tenure.queues"))["running"])


async def test_an_estimate_follows_what_runs_really_take(world):
    await world.set_lane(estimate_seconds=1.0)
    for _ in range(12):
        await _end_after(world, await world.running(), SUCCESS, seconds=50.0)
    await _fold(world)

    assert 45.0 < (await world.lane())["estimate_seconds"] < 50.1


async def test_one_wild_run_moves_the_estimate_only_a_part_of_the_way(world):
    await world.set_lane(estimate_seconds=10.0)
    await _end_after(world, await world.running(), SUCCESS, seconds=110.0)
    await _fold(world)

    assert pytest.approx(30.0, abs=2.0) == (await world.lane())["estimate_seconds"]


async def test_weights_share_worker_time_whatever_each_job_takes(world):
    """Served seconds per weight differ by no more than one longest run of each (Goyal et al. 1996)."""
    seconds, weight, served = {"a": 5.0, "b": 1.0}, {"a": 1.0, "b": 3.0}, {"a": 0.0, "b": 0.0}
    for tenant in ("a", "b"):
        await world.set_lane(tenant, weight=weight[tenant], estimate_seconds=1.0)
        await world.enqueue_many(150, tenant_id=TenantId(tenant))
    for _ in range(120):
        claim = await world.claim_one(count=1)
        await _end_after(world, claim, SUCCESS, seconds=seconds[claim.tenant_id])
        served[claim.tenant_id] += seconds[claim.tenant_id]

    assert abs(served["a"] / weight["a"] - served["b"] / weight["b"]) <= 5.0 / 1.0 + 1.0 / 3.0


async def test_a_tenants_first_job_starts_within_one_round_whatever_the_others_have_waiting(world):
    for tenant in ("a", "b", "c"):
        await world.enqueue_many(100, tenant_id=TenantId(tenant))
    for _ in range(10):
        await _end_after(world, await world.claim_one(count=1), SUCCESS, seconds=1.0)
    await world.enqueue(tenant_id=TenantId("late"))
    order = []
    for _ in range(4):
        claim = await world.claim_one(count=1)
        order.append(claim.tenant_id)
        await _end_after(world, claim, SUCCESS, seconds=1.0)

    assert "late" in order


# ---------------------------------------------------------------- nothing depends on them


async def test_an_insert_that_commits_late_with_a_smaller_number_is_found(world):
    producer = await world.connect()
    async with producer.transaction():
        early = await world.enqueue(connection=producer)
        late = [await world.enqueue() for _ in range(3)]
        taken = [claim.fence.job_id for claim in await world.claim()]
    found = [claim.fence.job_id for claim in await world.claim()]

    assert (late, [early]) == (taken, found)


async def test_an_arrival_of_better_priority_is_found_though_the_scan_had_passed_it(world):
    await world.enqueue_many(3, priority=10)
    await world.claim(2)
    urgent = await world.enqueue(priority=-10)

    assert urgent == (await world.claim(1))[0].fence.job_id


async def test_the_sweep_finds_a_lane_that_forgot_its_jobs(world):
    job_id = await world.enqueue()
    await _fold(world)
    await world.set_lane(backlogged=False)
    nothing = await world.claim()
    lost_sight = await _sweep(world)

    assert ([], [TENANT]) == (nothing, lost_sight)
    assert job_id == (await world.claim_one()).fence.job_id


async def test_the_sweep_finds_jobs_that_the_scan_had_passed(world):
    passed = await world.enqueue()
    await world.enqueue()
    await _fold(world)
    await world.set_lane(head_priority=0, head_seq=(await world.job(passed))["seq"])
    before = [claim.fence.job_id for claim in await world.claim(1)]  # full: the lane does not notice that it is empty
    lost_sight = await _sweep(world)

    assert passed not in before
    assert [TENANT] == lost_sight
    assert passed == (await world.claim_one()).fence.job_id


async def test_the_sweep_finds_jobs_whose_lane_is_gone(world):
    job_id = await world.enqueue()
    await _fold(world)
    await world.main.execute("DELETE FROM tenure.lanes")
    lost_sight = await _sweep(world)

    assert [TENANT] == lost_sight
    assert job_id == (await world.claim_one()).fence.job_id


async def test_the_sweep_raises_no_alarm_when_all_is_well(world):
    await world.enqueue_many(5, tenant_id=A)
    await world.enqueue_many(5, tenant_id=B)
    await world.claim(4)
    await world.enqueue(tenant_id=TenantId("c"))

    assert [] == await _sweep(world, fold=False)
    assert [] == await _sweep(world)


async def test_the_sweep_gives_an_idle_lane_no_credit(world):
    await world.enqueue()
    await _fold(world)
    await world.set_lane(backlogged=False, virtual_time=1.0)
    await world.set_queue(floor=70.0)
    await _sweep(world)

    assert 70.0 == (await world.lane())["virtual_time"]


@pytest.mark.parametrize("drifted", [0, 1, 9])
async def test_a_counter_that_drifted_is_set_from_the_leases(world, drifted):
    await world.enqueue_many(4)
    claims = await world.claim(3)
    await world.settle(claims[0], SUCCESS)  # not folded yet: the counter still holds it
    await world.set_lane(running=drifted)
    await world.set_queue(running=drifted)
    found = await _recount(world)
    await _fold(world)

    assert [TENANT] == found
    assert (2, 2) == (
        (await world.lane())["running"],
        (await world.one("SELECT running FROM tenure.queues"))["running"],
    )


async def test_the_recount_raises_no_alarm_when_all_is_well(world):
    await world.enqueue_many(4)
    claims = await world.claim(3)
    await world.settle(claims[0], SUCCESS)

    assert [] == await _recount(world)
    await _fold(world)
    assert [] == await _recount(world)


async def test_folding_forgets_nothing_that_is_not_committed_yet(world):
    claim = await world.running()
    settler = await world.connect()
    async with settler.transaction():
        await world.settle(claim, SUCCESS, connection=settler)
        await _fold(world)
        during = (await world.lane())["running"]
    await _fold(world)

    assert (1, 0) == (during, (await world.lane())["running"])
    assert [] == await world.rows("SELECT FROM tenure.lane_events")


async def test_a_reaped_job_is_found_again(world):
    claim = await world.running()
    await world.reap()

    assert (claim.fence.job_id, 2) == ((again := (await world.claim_one()).fence).job_id, again.attempt)


async def test_a_promoted_job_is_found(world):
    job_id = await world.enqueue(not_before=await world.now(hours=1))
    nothing = await world.claim()
    await jobs.promote(world.main, now=await world.now(hours=2))

    assert [] == nothing
    assert job_id == (await world.claim_one()).fence.job_id


async def test_a_job_is_not_promoted_before_its_time(world):
    job_id = await world.enqueue(not_before=await world.now(hours=1))
    promoted = await jobs.promote(world.main, now=await world.now(minutes=59))

    assert {} == promoted
    assert JobState.SCHEDULED == await world.state(job_id)


async def _end_after(world, claim, end, *, seconds):
    """End the run as if it had taken so long; without an end the lease lapses."""
    await world.main.execute(
        "UPDATE tenure.jobs SET claimed_at = clock_timestamp() - make_interval(secs => %s) WHERE id = %s",
        [seconds, claim.fence.job_id],
    )
    if end is not None:
        await world.settle(claim, end)
        return
    await world.main.execute(
        "UPDATE tenure.jobs SET lease_expires_at = clock_timestamp() WHERE id = %s", [claim.fence.job_id]
    )
    await world.reap(minutes=0)


async def _fold(world):
    await _locked(world, lanes.fold)


async def _sweep(world, *, fold=True):
    if fold:
        await _fold(world)
    return await _locked(world, lanes.sweep)


async def _recount(world):
    return await _locked(world, lanes.recount)


async def _locked(world, work):
    async with world.main.transaction():
        await queues.lock(world.main, QUEUE)
        return await work(world.main, QUEUE)
