"""What a claim may take: never more than asked, never beyond a limit, under any plan and with any company."""

import asyncio
import itertools
import random

import pytest
from store_world import FAILURE_FOR_GOOD, SUCCESS

from tenure.core.ids import TenantId
from tenure.core.lifecycle import JobState

PLAN_SETTINGS = ("enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_material", "enable_indexscan")


@pytest.mark.parametrize(
    "off", [off for n in range(4) for off in itertools.combinations(PLAN_SETTINGS, n)], ids="-".join
)
async def test_a_claim_takes_exactly_what_it_was_asked_for_under_every_plan(world, off):
    for tenant in "abcde":
        await world.enqueue_many(10, tenant_id=TenantId(tenant))
    await world.main.execute("ANALYZE tenure.jobs, tenure.lanes")
    for setting in off:
        await world.main.execute(f"SET {setting} = off")
    claims = await world.claim(7)
    running = await world.rows("SELECT id FROM tenure.jobs WHERE state = 'running'")

    assert 7 == len(claims)
    assert {claim.fence.job_id for claim in claims} == {row["id"] for row in running}
    assert [1, 1, 1, 2, 2] == sorted(await _running_by_tenant(world))
    assert 7 == (await world.one("SELECT running FROM tenure.queues"))["running"]


async def test_a_ceiling_is_never_passed_however_many_claim_at_once(world):
    tenants = {"a": 3, "b": 1, "c": 5}
    for tenant, ceiling in tenants.items():
        await world.set_lane(tenant, ceiling=ceiling, cap=ceiling)
        await world.enqueue_many(40, tenant_id=TenantId(tenant))
    await world.set_queue(slots=7)
    ended = asyncio.Event()
    watching = asyncio.create_task(_watch(world, ended))
    done = await asyncio.gather(*[_work(world, await world.connect(), rounds=12) for _ in range(5)])
    ended.set()
    most, total, snapshots = await watching

    assert min(sum(done), snapshots) > 20
    assert total <= 7
    assert most.keys() == tenants.keys()
    assert all(most[tenant] <= ceiling for tenant, ceiling in tenants.items())


async def test_slots_of_a_queue_bound_all_workers_together(world):
    await world.set_queue(slots=4)
    await world.enqueue_many(10)
    first, second = await world.claim(3), await world.claim(3)
    await world.settle(first[0], SUCCESS)
    third = await world.claim(3)

    assert [3, 1, 1] == [len(first), len(second), len(third)]


async def test_a_queue_whose_slots_were_lowered_below_what_runs_gives_nothing(world):
    await world.enqueue_many(10)
    claims = await world.claim(4)
    await world.set_queue(slots=2)
    nothing = await world.claim(3)
    for claim in claims[:3]:
        await world.settle(claim, SUCCESS)

    assert [] == nothing
    assert 1 == len(await world.claim(3))


async def test_a_paused_queue_gives_nothing_until_it_goes_on(world):
    await world.enqueue_many(3)
    await world.set_queue(paused=True)
    nothing = await world.claim()
    await world.set_queue(paused=False)

    assert [] == nothing
    assert 3 == len(await world.claim())


async def test_a_paused_lane_gives_nothing_and_the_others_go_on(world):
    await world.set_lane("a", paused=True)
    await world.enqueue_many(3, tenant_id=TenantId("a"))
    await world.enqueue_many(3, tenant_id=TenantId("b"))
    others = await world.claim()
    await world.set_lane("a", paused=False)
    rest = await world.claim()

    assert {"b"} == {claim.tenant_id for claim in others}
    assert ["a"] * 3 == [claim.tenant_id for claim in rest]


async def test_slots_no_lane_below_its_cap_wants_are_lent_but_headroom_is_not(world):
    await world.set_lane(cap=2)
    await world.set_queue(slots=10, headroom=3)
    await world.enqueue_many(20)
    first = await world.claim()
    await world.enqueue(tenant_id=TenantId("newcomer"))
    second = await world.claim()

    assert 7 == len(first)
    assert ["newcomer"] == [claim.tenant_id for claim in second]


async def test_a_lane_below_its_cap_goes_before_one_that_borrows(world):
    await world.set_lane("greedy", cap=1, virtual_time=0)
    await world.set_lane("modest", cap=5, virtual_time=1_000)
    for tenant in ("greedy", "modest"):
        await world.enqueue_many(10, tenant_id=TenantId(tenant))
    claims = await world.claim(4)

    assert {"greedy": 1, "modest": 3} == _count(claims)


async def test_a_ceiling_bounds_lending(world):
    await world.set_lane(cap=1, ceiling=4)
    await world.enqueue_many(10)

    assert [4, 0] == [len(await world.claim(10)), len(await world.claim(10))]


async def test_a_cap_of_zero_only_borrows_and_a_ceiling_of_zero_gets_nothing(world):
    await world.set_lane("borrower", cap=0)
    await world.set_lane("barred", ceiling=0)
    for tenant in ("borrower", "barred"):
        await world.enqueue_many(2, tenant_id=TenantId(tenant))

    assert {"borrower": 2} == _count(await world.claim())


async def test_changing_a_cap_acts_on_the_backlog_at_once(world):
    await world.set_lane(cap=1, ceiling=1)
    await world.enqueue_many(5)
    before = len(await world.claim())
    await world.set_lane(cap=3, ceiling=3)

    assert (1, 2) == (before, len(await world.claim()))


async def test_inside_a_lane_smaller_priority_goes_first_and_then_arrival(world):
    late = [await world.enqueue(priority=priority) for priority in (5, 0, -5, 0)]
    order = [claim.fence.job_id for _ in late for claim in await world.claim(1)]

    assert [late[2], late[1], late[3], late[0]] == order


async def test_priority_never_crosses_tenants(world):
    await world.set_lane("patient", virtual_time=0)
    await world.set_lane("pushy", virtual_time=10)
    await world.enqueue(tenant_id=TenantId("patient"), priority=100)
    await world.enqueue(tenant_id=TenantId("pushy"), priority=-100)

    assert ["patient"] == [claim.tenant_id for claim in await world.claim(1)]


async def test_a_lane_that_is_empty_does_not_cost_another_its_turn(world):
    """Lanes learn only by a claim that they are empty; a slot offered to one must go to the next at once."""
    for tenant in "abc":
        await world.set_lane(tenant, virtual_time=0)
        gone = await world.enqueue(tenant_id=TenantId(tenant))
        await world.main.execute(
            "UPDATE tenure.jobs SET state = 'cancelled', finished_at = clock_timestamp() WHERE id = %s", [gone]
        )
    await world.set_lane("last", virtual_time=100)
    await world.enqueue(tenant_id=TenantId("last"))

    assert ["last"] == [claim.tenant_id for claim in await world.claim(1)]


async def test_a_worker_takes_only_kinds_it_knows(world):
    known, unknown = await world.enqueue(), await world.enqueue(kind="newer")
    claims = await world.claim()

    assert [known] == [claim.fence.job_id for claim in claims]
    assert JobState.QUEUED == await world.state(unknown)


async def test_a_claim_of_a_queue_nobody_made_known_loses_nothing(world):
    job_id = await world.enqueue(queue="unheard")
    nothing = await world.claim(queue="unheard")
    await world.main.execute("INSERT INTO tenure.queues (name) VALUES ('unheard')")
    claims = await world.claim(queue="unheard")

    assert [] == nothing
    assert [job_id] == [claim.fence.job_id for claim in claims]


async def test_a_claim_says_what_the_run_needs(world):
    job_id = await world.enqueue(args=b'{"n": 1}', max_attempts=7, max_crashes=4, lease_seconds=12.5)
    before = await world.now()
    claim = await world.claim_one(job_id)
    row = await world.job(job_id)

    assert (7, 4, 12.5, 0, 0, 1) == (
        claim.max_attempts,
        claim.max_crashes,
        claim.lease_seconds,
        claim.failures,
        claim.crashes,
        claim.fence.attempt,
    )
    assert b'{"n": 1}' == claim.args
    assert 12.5 <= (row["lease_expires_at"] - before).total_seconds() < 60


async def test_a_dead_job_frees_its_slot_like_any_other(world):
    await world.set_queue(slots=1)
    claim = await world.running()
    await world.enqueue()
    nothing = await world.claim()
    await world.settle(claim, FAILURE_FOR_GOOD)

    assert [] == nothing
    assert 1 == len(await world.claim())


async def _work(world, connection, *, rounds):
    """Claim and settle, at random, holding some runs over to the next round."""
    held, done = [], 0
    for _ in range(rounds):
        held += await world.claim(random.randint(1, 6), connection=connection)
        random.shuffle(held)
        keep = random.randint(0, len(held))
        for claim in held[keep:]:
            await world.settle(claim, SUCCESS, connection=connection)
            done += 1
        held = held[:keep]
    for claim in held:
        await world.settle(claim, SUCCESS, connection=connection)
    return done + len(held)


async def _watch(world, ended):
    """The most that ever ran at once in any snapshot, counted from the leases: by tenant, and in all."""
    most, total, snapshots = {}, 0, 0
    while not ended.is_set():
        rows = await world.rows(
            "SELECT tenant_id, count(*) FROM tenure.jobs WHERE state = 'running' GROUP BY tenant_id"
        )
        counts = {row["tenant_id"]: row["count"] for row in rows}
        most = {tenant: max(most.get(tenant, 0), counts.get(tenant, 0)) for tenant in most.keys() | counts}
        total = max(total, sum(counts.values()))
        snapshots += 1
    return most, total, snapshots


async def _running_by_tenant(world):
    rows = await world.rows("SELECT count(*) FROM tenure.jobs WHERE state = 'running' GROUP BY tenant_id")
    return [row["count"] for row in rows]


def _count(claims):
    tenants = [claim.tenant_id for claim in claims]
    return {tenant: tenants.count(tenant) for tenant in tenants}
