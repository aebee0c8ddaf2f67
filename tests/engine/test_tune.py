"""Weights, caps, pauses and slots changed while jobs wait."""

import asyncio

import msgspec
import pytest
from operator_world import ACME, OTHER, QUEUE, THIRD, OperatorWorld

from tenure.core.errors import InvalidInputError, NotFoundError
from tenure.core.ids import TenantId
from tenure.core.tuning import UNLIMITED, LaneChanges, QueueChanges
from tenure.engine.tune import list_lanes, list_queues, tune_lane, tune_queue
from tenure.store.database import connect


@pytest.fixture
async def world(engine_settings, engine_database):
    async with OperatorWorld.opened(engine_settings) as world:
        yield world


def tune(world, tenant=ACME, *, queue=QUEUE, **changes):
    return tune_lane(world.connection, "someone", queue, tenant, LaneChanges(**changes))


def tune_the_queue(world, **changes):
    return tune_queue(world.connection, "someone", QUEUE, QueueChanges(**changes))


async def counts(world, count):
    tenants = [claim.tenant_id for claim in await world.claim(count)]
    return tenants.count(ACME), tenants.count(OTHER)


async def run(world, count):
    """As `counts`, but every run takes its second and ends."""
    claims = await world.claim(count)
    await world.execute("UPDATE tenure.jobs SET claimed_at = claimed_at - interval '1 s' WHERE state = 'running'")
    for claim in claims:
        await world.settle(claim)
    tenants = [claim.tenant_id for claim in claims]
    return tenants.count(ACME), tenants.count(OTHER)


async def test_a_weight_acts_on_the_jobs_that_wait_already(world):
    for tenant in (ACME, OTHER):
        await world.enqueue(tenant, count=40)
    await tune(world, weight=3.0)

    assert (15, 5) == await counts(world, 20)


async def test_a_cap_and_a_ceiling_act_on_the_jobs_that_wait_already(world):
    for tenant in (ACME, OTHER):
        await world.enqueue(tenant, count=20)
    await tune(world, cap=2)
    await tune(world, OTHER, ceiling=3)

    assert (7, 3) == await counts(world, 10)  # beyond its cap by what nobody else may use
    await tune(world, ceiling=7)
    assert (0, 0) == await counts(world, 10)
    await tune(world, ceiling=UNLIMITED)
    assert (10, 0) == await counts(world, 10)


async def test_a_paused_tenant_is_passed_over_and_saves_nothing_up_meanwhile(world):
    for tenant in (ACME, OTHER):
        await world.enqueue(tenant, count=60)
    await tune(world, paused=True)

    assert (0, 30) == await run(world, 30)
    await tune(world, paused=False)
    assert (5, 5) == await counts(world, 10)


async def test_a_tenant_that_had_no_room_saves_nothing_up_either(world):
    await tune(world, ceiling=0)
    for tenant in (ACME, OTHER):
        await world.enqueue(tenant, count=60)

    assert (0, 30) == await run(world, 30)
    await tune(world, ceiling=UNLIMITED)
    assert (5, 5) == await counts(world, 10)


async def test_a_tenant_without_work_gets_a_lane_that_wakes_like_a_new_one(world):
    await world.set_lane(OTHER, virtual_time=560.0, estimate_seconds=60.0, running=1, backlogged=True)
    await world.set_queue(floor=560.0)
    settings = await tune(world, weight=4.0, cap=2)
    await world.enqueue(ACME)
    await world.enqueue(THIRD)
    await world.fold()
    lane = await world.lane()

    assert (4.0, 2, None, False) == (settings.weight, settings.cap, settings.ceiling, settings.paused)
    assert (4.0, 2, 500.0) == (lane["weight"], lane["cap"], lane["virtual_time"])
    assert 500.0 == (await world.lane(THIRD))["virtual_time"]


async def test_what_runs_counts_by_the_new_weight_when_it_ends(world):
    """A claim charges an estimate by the old weight; corrected by another weight, it would leave a debt or a credit."""
    for before, after in ((1.0, 100.0), (100.0, 1.0)):
        await world.set_lane(weight=before, estimate_seconds=60.0, virtual_time=0.0, backlogged=False)
        await world.set_queue(floor=0.0)
        await world.enqueue()
        (claim,) = await world.claim()
        await world.execute("UPDATE tenure.jobs SET claimed_at = claimed_at - interval '10 s' WHERE state = 'running'")
        await tune(world, weight=after)
        await world.set_lane(backlogged=True)
        await world.settle(claim)
        await world.fold()

        assert pytest.approx(10.0 / after, rel=0.1) == (await world.lane())["virtual_time"]


async def test_a_lead_is_paid_back_by_the_new_weight(world):
    await world.set_lane(OTHER, virtual_time=100.0, backlogged=True)
    await world.set_lane(weight=1.0, virtual_time=180.0, backlogged=True)
    await tune(world, weight=4.0)

    assert 120.0 == (await world.lane())["virtual_time"]


async def test_a_resumed_lane_begins_where_a_newcomer_would(world):
    """At what the lane whose turn is next has used, without its charges for runs under way."""
    await world.set_lane(OTHER, virtual_time=560.0, estimate_seconds=60.0, running=1, backlogged=True)
    await world.set_lane(ACME, virtual_time=3.0, paused=True, backlogged=True)
    await world.set_queue(floor=560.0)
    await tune(world, paused=False)

    assert 500.0 == (await world.lane())["virtual_time"]


async def test_pausing_does_not_move_a_lane(world):
    await world.set_queue(floor=100.0)
    await world.set_lane(virtual_time=40.0, backlogged=True)
    await tune(world, paused=True)

    assert 40.0 == (await world.lane())["virtual_time"]


async def test_a_queue_is_paused_resumed_and_given_slots(world):
    await world.enqueue(count=10)
    await tune_the_queue(world, paused=True)
    assert [] == await world.claim(5)

    settings = await tune_the_queue(world, paused=False, slots=3, headroom=1)
    assert (3, 1, False) == (settings.slots, settings.headroom, settings.paused)
    assert 3 == len(await world.claim(5))
    assert None is (await tune_the_queue(world, slots=UNLIMITED)).slots
    assert 5 == len(await world.claim(5))


async def test_what_is_left_out_stays(world):
    await tune(world, weight=2.0, cap=5, ceiling=6, paused=True)
    settings = await tune(world, cap=7)
    await tune_the_queue(world, slots=4, headroom=2)
    queue = await tune_the_queue(world, headroom=1)

    assert (2.0, 7, 6, True) == (settings.weight, settings.cap, settings.ceiling, settings.paused)
    assert (4, 1, False) == (queue.slots, queue.headroom, queue.paused)


async def test_every_change_is_written_down_with_who_and_what_was_before(world):
    await tune(world, weight=2.0)
    await tune(world, weight=3.0)
    await tune_the_queue(world, slots=4)
    rows = await world.rows("SELECT * FROM tenure.audit_log ORDER BY id")
    details = [msgspec.json.decode(row["detail"]) for row in rows]

    assert ["lane.tune", "lane.tune", "queue.tune"] == [row["action"] for row in rows]
    assert ["test/acme", "test/acme", "test"] == [row["subject"] for row in rows]
    assert {"someone"} == {row["actor"] for row in rows}
    assert [ACME, ACME, None] == [row["tenant_id"] for row in rows]
    assert None is details[0]["before"]
    assert (2.0, 3.0) == (details[1]["before"]["weight"], details[1]["after"]["weight"])
    assert (None, 4) == (details[2]["before"]["slots"], details[2]["after"]["slots"])


async def test_a_change_that_is_rolled_back_leaves_no_trace(world):
    async with world.connection.transaction(force_rollback=True):
        await tune(world, weight=2.0)

    assert [] == await world.rows("SELECT 1 FROM tenure.audit_log UNION ALL SELECT 1 FROM tenure.lanes")


async def test_the_doorbell_rings_for_every_change(world, engine_settings):
    listener = await connect(engine_settings)
    await listener.execute("LISTEN tenure_doorbell")
    for change in (tune(world, weight=2.0), tune_the_queue(world, slots=2)):
        await change
        notices = [notice async for notice in listener.notifies(timeout=10, stop_after=1)]
        assert [QUEUE] == [notice.payload for notice in notices]
    await listener.close()


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (lambda on: tune_queue(on, "one", QUEUE, QueueChanges(slots=5)), {"slots": 6}, "slots"),
        (lambda on: tune_lane(on, "one", QUEUE, ACME, LaneChanges(weight=5.0)), {"weight": 6.0}, "weight"),
    ],
    ids=["queue", "lane"],
)
async def test_of_two_changes_at_once_the_second_knows_the_first(world, engine_settings, first, second, name):
    await tune(world, weight=1.0)
    other = await connect(engine_settings)
    async with other.transaction():
        await first(other)
        change = tune(world, **second) if name == "weight" else tune_the_queue(world, **second)
        changing = asyncio.ensure_future(change)
        await blocked(other, world.connection)
    await changing
    await other.close()
    last = await world.one("SELECT detail FROM tenure.audit_log ORDER BY id DESC LIMIT 1")
    detail = msgspec.json.decode(last["detail"])

    assert (5, 6) == (detail["before"][name], detail["after"][name])


@pytest.mark.parametrize("change", [{"weight": 2.0}, {"slots": 2}])
async def test_a_change_waits_for_the_claim_that_holds_the_queue(world, engine_settings, change):
    await tune(world, weight=1.0)
    other = await connect(engine_settings)
    async with other.transaction():
        await other.execute("SELECT FROM tenure.queues WHERE name = 'test' FOR NO KEY UPDATE")
        changing = asyncio.ensure_future(
            tune(world, **change) if "weight" in change else tune_the_queue(world, **change)
        )
        await blocked(other, world.connection)
    await changing
    await other.close()


async def blocked(observer, connection):
    """Until PostgreSQL says that the connection waits for another one."""
    query = "SELECT pg_blocking_pids(%s) <> '{}'"
    async with asyncio.timeout(20):
        while not (await (await observer.execute(query, [connection.info.backend_pid])).fetchone())[0]:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, [""]),
        ({"weight": 0.0}, ["/weight"]),
        ({"weight": -1.0}, ["/weight"]),
        ({"weight": float("nan")}, ["/weight"]),
        ({"weight": float("inf")}, ["/weight"]),
        ({"weight": 1_000_001.0}, ["/weight"]),
        ({"weight": 10**400}, ["/weight"]),
        ({"weight": 1e-300}, ["/weight"]),
        ({"weight": "2"}, ["/weight"]),
        ({"weight": True}, ["/weight"]),
        ({"cap": -1, "ceiling": 1.5, "paused": 1}, ["/cap", "/ceiling", "/paused"]),
        ({"cap": 2**31}, ["/cap"]),
    ],
)
async def test_wrong_values_are_named_and_change_nothing(world, changes, fields):
    with pytest.raises(InvalidInputError) as caught:
        await tune(world, **changes)

    assert fields == [problem.pointer for problem in caught.value.problems]
    assert [] == await world.rows("SELECT 1 FROM tenure.lanes")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [({}, [""]), ({"slots": -1, "headroom": -1}, ["/slots", "/headroom"]), ({"headroom": UNLIMITED}, ["/headroom"])],
)
async def test_wrong_values_for_a_queue_are_named(world, changes, fields):
    with pytest.raises(InvalidInputError) as caught:
        await tune_the_queue(world, **changes)

    assert fields == [problem.pointer for problem in caught.value.problems]


@pytest.mark.parametrize("queue", ["nowhere", "", "a\x00b", "x" * 65])
async def test_an_unknown_queue_is_not_found_and_not_made(world, queue):
    with pytest.raises(NotFoundError):
        await tune(world, queue=queue, weight=2.0)
    with pytest.raises(NotFoundError):
        await tune_queue(world.connection, "someone", queue, QueueChanges(slots=1))
    with pytest.raises(NotFoundError):
        await list_lanes(world.connection, queue, 10)

    assert [{"name": QUEUE}] == await world.rows("SELECT name FROM tenure.queues")


@pytest.mark.parametrize("tenant", ["", "a\x00b", "x" * 101])
async def test_a_tenant_that_cannot_exist_is_refused(world, tenant):
    with pytest.raises(InvalidInputError):
        await tune(world, TenantId(tenant), weight=2.0)


async def test_queues_and_tenants_are_listed_with_what_they_run_and_have_waiting(world):
    await world.hire(slots=4)
    await tune_the_queue(world, slots=8)
    await world.enqueue(ACME, count=3)
    await world.enqueue(OTHER, count=2)
    await tune(world, OTHER, cap=0, ceiling=0)
    await world.claim(2)
    (queue,) = await list_queues(world.connection)
    first, second = await list_lanes(world.connection, QUEUE, 10)

    assert (8, 2, 3, 1, 4) == (
        queue.settings.slots,
        queue.running,
        queue.waiting,
        queue.workers,
        queue.worker_slots,
    )
    assert (ACME, 2, 1, None) == (first.settings.tenant_id, first.running, first.waiting, first.settings.cap)
    assert (OTHER, 0, 2, 0) == (second.settings.tenant_id, second.running, second.waiting, second.settings.cap)
    assert (0.0, 0.0) == (first.lead_seconds, second.lead_seconds)  # the one is next, the other has no room
    assert [OTHER] == [lane.settings.tenant_id for lane in await list_lanes(world.connection, QUEUE, 1, ACME)]
