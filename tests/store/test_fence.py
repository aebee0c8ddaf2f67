"""A write whose fence is no longer current changes zero rows in every table."""

from dataclasses import replace
from uuid import uuid4

import pytest
from store_world import (
    CANCELLED,
    CRASH,
    FAILURE,
    FAILURE_FOR_GOOD,
    HOST,
    KIND,
    POLICY,
    RELEASE,
    SUCCESS,
    TENANT,
    together,
)

from tenure.core.ids import LeaseToken, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.settlement import decide
from tenure.store import jobs, progress, runs
from tenure.store.jobs import Beat
from tenure.store.progress import Progress

OTHER = TenantId("rival")


async def _wrong_attempt(world):
    return _with_fence(await world.running(), attempt=2)


async def _wrong_token(world):
    return _with_fence(await world.running(), lease_token=LeaseToken(uuid4()))


async def _after_reap(world):
    claim = await world.running()
    await world.reap()
    return claim


async def _after_another_claim(world):
    claim = await world.running()
    await world.reap()
    await world.claim_one(claim.fence.job_id)
    return claim


async def _after_success(world):
    claim = await world.running()
    await world.settle(claim, SUCCESS)
    return claim


async def _after_release_and_another_claim(world):
    claim = await world.running()
    await world.settle(claim, RELEASE)
    await world.claim_one(claim.fence.job_id)
    return claim


def _with_fence(claim, **fence):
    return replace(claim, fence=replace(claim.fence, **fence))


def _settle(end):
    async def settle(world, claim):
        return await world.settle(claim, end)

    return settle


async def _heartbeat(world, claim):
    return await jobs.heartbeat(world.main, [claim.fence])


async def _progress(world, claim):
    return await progress.record(world.main, {claim.fence: Progress(done=5)})


async def _checkpoint(world, claim):
    return await progress.checkpoint(world.main, {claim.fence: b'{"page":7}'})


WRITES = {
    "heartbeat": _heartbeat,
    "progress": _progress,
    "checkpoint": _checkpoint,
    "succeed": _settle(SUCCESS),
    "retry": _settle(FAILURE),
    "fail": _settle(FAILURE_FOR_GOOD),
    "crash": _settle(CRASH),
    "release": _settle(RELEASE),
    "cancel": _settle(CANCELLED),
}


@pytest.mark.parametrize(
    "stale",
    [
        _wrong_attempt,
        _wrong_token,
        _after_reap,
        _after_another_claim,
        _after_success,
        _after_release_and_another_claim,
    ],
)
async def test_no_write_with_a_stale_fence_changes_anything(world, stale):
    claim = await stale(world)
    before = await world.everything()
    answers = {name: await write(world, claim) for name, write in WRITES.items()}

    assert before == await world.everything()
    assert [] == [name for name, answer in answers.items() if answer]


@pytest.mark.parametrize("name", WRITES)
async def test_every_write_with_the_current_fence_changes_something(world, name):
    claim = await world.running()
    before = await world.everything()
    await WRITES[name](world, claim)

    assert before != await world.everything()


async def test_a_batch_tells_for_each_run_whether_its_report_was_stale(world):
    claims = [await world.running() for _ in range(5)]
    stale = claims[1], claims[3]
    await world.settle(stale[0], SUCCESS)
    forged = _with_fence(stale[1], lease_token=LeaseToken(uuid4()))
    reports = [claims[0], stale[0], claims[2], forged, claims[4]]

    ends = await jobs.settle(world.main, [decide(claim, SUCCESS, POLICY, chance=0) for claim in reports], host=HOST)

    assert {claims[0].fence.job_id, claims[2].fence.job_id, claims[4].fence.job_id} == {end.job_id for end in ends}
    assert JobState.RUNNING == await world.state(stale[1].fence.job_id)
    assert 4 == len(await world.rows("SELECT FROM tenure.runs"))


async def test_a_batch_of_heartbeats_answers_for_each_lease(world):
    alive, ended, asked = [await world.running() for _ in range(3)]
    await world.settle(ended, SUCCESS)
    await world.cancel(asked.fence.job_id)

    answer = await jobs.heartbeat(world.main, [alive.fence, ended.fence, asked.fence])

    assert {alive.fence.job_id: Beat.EXTENDED, asked.fence.job_id: Beat.CANCEL_REQUESTED} == answer


async def test_a_lapsed_lease_cannot_be_extended_though_nobody_reaped_it(world):
    claim = await world.running(lease_seconds=60)
    before = await world.everything()
    answer = await jobs.heartbeat(world.main, [claim.fence], now=await world.now(seconds=61))

    assert {} == answer
    assert before == await world.everything()


async def test_a_checkpoint_and_progress_that_meet_a_settle_under_way_write_nothing(world):
    claim = await world.running()
    settler = await world.connect()
    async with settler.transaction():
        await world.settle(claim, SUCCESS, connection=settler)
        checkpointed = await progress.checkpoint(world.main, {claim.fence: b"1"})
        await progress.record(world.main, {claim.fence: Progress(done=1)})

    assert set() == checkpointed
    assert [] == await world.rows("SELECT FROM tenure.checkpoints")
    assert [] == await world.rows("SELECT FROM tenure.job_progress")


async def test_a_lease_cannot_be_taken_back_while_its_checkpoint_is_being_written(world):
    claim = await world.running()
    writer = await world.connect()
    async with writer.transaction():
        await progress.checkpoint(writer, {claim.fence: b"1"})
        reaped_meanwhile = await world.reap()
    reaped_after = await world.reap()

    assert [] == reaped_meanwhile
    assert [claim.fence.job_id] == [end.job_id for end in reaped_after]


async def test_a_foreign_tenant_can_neither_see_nor_cancel_a_job(world):
    waiting = await world.enqueue()
    running = await world.running()
    ended = await world.running()
    await world.settle(ended, SUCCESS)
    before = await world.everything()
    for job_id in (waiting, running.fence.job_id, ended.fence.job_id):
        seen = [
            await jobs.find(world.main, OTHER, job_id),
            await jobs.cancel(world.main, OTHER, job_id),
            await runs.of_job(world.main, OTHER, job_id),
        ]

        assert [None, None, []] == seen
    assert before == await world.everything()


async def test_the_same_unique_key_of_another_tenant_is_another_key(world):
    ours = await world.enqueue(unique_key="daily")
    theirs = await world.enqueue(unique_key="daily", tenant_id=OTHER)

    assert [ours, theirs] == [await jobs.holder(world.main, tenant, "daily") for tenant in (TENANT, OTHER)]


async def test_a_lease_token_is_new_for_each_claim(world):
    job_id = await world.enqueue()
    tokens = set()
    for _ in range(5):
        claim = await world.claim_one(job_id)
        tokens.add(claim.fence.lease_token)
        await world.settle(claim, RELEASE)
    job = await world.job(job_id)

    assert 5 == len(tokens)
    assert (5, 5, 0, 0) == (job["attempt"], job["releases"], job["failures"], job["crashes"])


async def test_settling_twice_records_one_run(world):
    claim = await world.running()
    other = await world.connect()
    first, second = await together(world.settle(claim, SUCCESS), world.settle(claim, SUCCESS, connection=other))

    assert 1 == len(first) + len(second)
    assert ["succeeded"] == await world.outcomes(claim.fence.job_id)


async def test_kinds_that_are_unknown_here_are_neither_claimed_nor_reaped_nor_expired(world):
    lapsed = await world.running()
    late = await world.enqueue(kind="unknown", start_deadline=await world.now(minutes=1))
    unknown = await world.running(kind=KIND)
    before = await world.everything()
    await world.reap(kinds=("other",))
    await jobs.expire(world.main, ["other"], now=await world.now(hours=1))
    taken = await world.claim(kinds=("other",))

    assert [] == taken
    assert before["jobs"] == (await world.everything())["jobs"]
    assert {lapsed.fence.job_id, unknown.fence.job_id} == {end.job_id for end in await world.reap()}
    assert JobState.QUEUED == await world.state(late)
