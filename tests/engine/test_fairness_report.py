"""How worker time was shared, from run records."""

from datetime import timedelta

import pytest
from operator_world import ACME, FAILURE, OTHER, QUEUE, SUCCESS, THIRD, OperatorWorld

from tenure.core.errors import InvalidInputError, NotFoundError
from tenure.core.run import RunOutcome
from tenure.engine.report import fairness_report


@pytest.fixture
async def world(engine_settings, engine_database):
    async with OperatorWorld.opened(engine_settings) as world:
        yield world


async def ran(world, tenant, *, began, waited=0.0, took=10.0, end=SUCCESS):
    """A run that began so many seconds ago, having waited before."""
    await world.enqueue(tenant)
    (claim,) = await world.claim()
    at = await world.now() - timedelta(seconds=began)
    await world.execute(
        "UPDATE tenure.jobs SET queued_at = %s, claimed_at = %s WHERE id = %s",
        at - timedelta(seconds=waited),
        at,
        claim.fence.job_id,
    )
    await world.settle(claim, end, now=at + timedelta(seconds=took))


async def report(world, seconds=3600, queue=QUEUE):
    found = await fairness_report(world.connection, queue, seconds)
    return {share.used.tenant_id: share for shares in found.queues for share in shares.tenants}, found


async def test_time_shares_outcomes_and_waits_are_told_by_tenant(world):
    await world.set_lane(ACME, weight=3.0)
    for waited in (1.0, 2.0, 30.0):
        await ran(world, ACME, began=100, waited=waited, took=20.0)
    await ran(world, OTHER, began=50, took=20.0, end=FAILURE)
    rows, found = await report(world)
    acme, other = rows[ACME], rows[OTHER]
    (shares,) = found.queues

    assert [60, 20, 80] == pytest.approx(
        [acme.used.worker_seconds, other.used.worker_seconds, shares.worker_seconds], abs=0.1
    )
    assert [0.75, 0.25] == pytest.approx([acme.share, other.share], abs=0.03)
    assert (0.75, 0.25) == (acme.share_due, other.share_due)
    assert [2, 30, 30] == pytest.approx(
        [acme.used.wait_seconds_p50, acme.used.wait_seconds_p95, acme.used.wait_seconds_max], abs=0.01
    )
    assert ({RunOutcome.SUCCEEDED: 3}, {RunOutcome.FAILED: 1}) == (acme.used.outcomes, other.used.outcomes)
    assert (3, 1) == (acme.used.runs, other.used.runs)
    assert pytest.approx(1.0, abs=0.01) == shares.jain_index


async def test_jains_index_falls_when_one_tenant_takes_all(world):
    await ran(world, ACME, began=100, took=50.0)
    await world.enqueue(OTHER)
    rows, found = await report(world)

    assert 0.5 == found.queues[0].jain_index
    assert (0.0, True) == (rows[OTHER].used.worker_seconds, rows[OTHER].used.waiting)
    assert rows[OTHER].used.first_waits_seconds < 10
    assert rows[OTHER].used.wait_seconds_max is None


async def test_only_the_part_within_the_window_counts(world):
    await ran(world, ACME, began=4000, took=450.0)  # 50 s of it in the last hour
    await ran(world, OTHER, began=5000, took=20.0)
    rows, found = await report(world)

    assert {ACME} == set(rows)
    assert pytest.approx(50, abs=5) == rows[ACME].used.worker_seconds
    assert rows[ACME].used.wait_seconds_p50 is None  # it began before
    assert pytest.approx(3600) == (found.until - found.since).total_seconds()


async def test_what_runs_now_counts_so_far(world):
    await world.enqueue(ACME)
    await world.claim()
    await world.execute("UPDATE tenure.jobs SET claimed_at = claimed_at - interval '30 s'")
    rows, _ = await report(world)

    assert (0, 1) == (rows[ACME].used.runs, rows[ACME].used.running)
    assert 29 < rows[ACME].used.worker_seconds < 60


async def test_every_tenant_in_line_is_found(world):
    tenants = [ACME, OTHER, THIRD]
    for tenant in tenants:
        await world.enqueue(tenant, count=3)
    rows, found = await report(world, queue=None)

    assert set(tenants) == set(rows)
    assert found.is_complete


async def test_nothing_is_an_answer_too(world):
    _, found = await report(world)

    assert () == found.queues


@pytest.mark.parametrize("seconds", [0, -1, 32 * 86_400])
async def test_a_window_has_bounds(world, seconds):
    with pytest.raises(InvalidInputError):
        await report(world, seconds)


async def test_an_unknown_queue_is_not_found(world):
    with pytest.raises(NotFoundError):
        await report(world, queue="nowhere")
