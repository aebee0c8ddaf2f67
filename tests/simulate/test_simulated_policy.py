"""The quick form of the policy chooses as `share_out` does, and keeps accounts as the statements of the store do."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.fairness import Lane, share_out
from tenure.core.ids import TenantId, WorkerId
from tenure.core.job import NewJob
from tenure.core.retry import RetryPolicy
from tenure.core.run import Succeeded
from tenure.core.settlement import decide
from tenure.engine.enqueue import new_job_id
from tenure.simulate.fair import FairShare, moved_estimate
from tenure.simulate.load import Group, Load
from tenure.simulate.policy import OUT, News
from tenure.store import jobs, queues

NAMES = "abcdefgh"
START = datetime(2026, 1, 5, tzinfo=UTC)


def load_of(groups, **facts):
    return Load(name="test", duration_seconds=1.0, groups=tuple(groups), **{"slots": 1, **facts})


def group(name, **facts):
    return Group(name=name, work=(), max_crashes=3, **facts)


lanes = st.lists(
    st.builds(
        Lane,
        tenant_id=st.just(""),
        virtual_time=st.integers(0, 40).map(float),
        weight=st.sampled_from([0.25, 1.0, 3.0]),
        estimate_seconds=st.integers(1, 30).map(float),
        running=st.integers(0, 5),
        cap=st.integers(0, 8),
        ceiling=st.integers(0, 10),
        waiting=st.integers(0, 10),
    ),
    min_size=1,
    max_size=len(NAMES),
)


@given(lanes, st.integers(0, 40), st.integers(0, 10))
def test_slots_given_out_one_by_one_go_where_share_out_gives_them_together(given_lanes, free, headroom):
    groups = [
        group(name, weight=lane.weight, cap=lane.cap, ceiling=lane.ceiling)
        for name, lane in zip(NAMES, given_lanes, strict=False)
    ]
    policy = FairShare(load_of(groups, headroom=headroom))
    policy.virtual_time = [lane.virtual_time for lane in given_lanes]
    policy.estimate_seconds = [lane.estimate_seconds for lane in given_lanes]
    policy.running = [lane.running for lane in given_lanes]
    policy.waiting = [lane.waiting for lane in given_lanes]
    policy._backlogged = bytearray([1]) * len(given_lanes)
    for number in range(len(given_lanes)):
        policy._place(number)

    claimed = Counter(NAMES[lane] for lane, _ in policy.claim(free))

    named = [
        Lane(**{name: getattr(lane, name) for name in Lane.__slots__} | {"tenant_id": NAMES[number]})
        for number, lane in enumerate(given_lanes)
    ]
    expected = share_out(named, free=free, lendable=free - headroom)
    assert {name: count for name, count in expected.items() if count} == dict(claimed)


def test_the_estimate_moves_a_fifth_of_the_way_with_each_run():
    assert 12.0 == pytest.approx(moved_estimate(10.0, mean_seconds=20.0, runs=1))
    assert 13.6 == pytest.approx(moved_estimate(10.0, mean_seconds=20.0, runs=2))
    assert 3_600.0 == moved_estimate(3_600.0, mean_seconds=1e9, runs=100)


class Store:
    """The same events for the statements of the store."""

    def __init__(self, connection, slots):
        self.connection, self.slots = connection, slots
        self.running = []

    async def open(self, groups, headroom):
        await queues.ensure(self.connection, "q")
        await self.connection.execute(
            "UPDATE tenure.queues SET slots = %s, headroom = %s WHERE name = 'q'", (self.slots, headroom)
        )
        for item in groups:
            await self.connection.execute(
                "INSERT INTO tenure.lanes (queue, tenant_id, weight, cap, ceiling) VALUES ('q', %s, %s, %s, %s)",
                (item.name, item.weight, item.cap, item.ceiling),
            )

    async def enqueue(self, tenant, count):
        new = [
            NewJob(
                id=new_job_id(),
                tenant_id=TenantId(tenant),
                queue="q",
                kind="work",
                args=b"{}",
                max_attempts=3,
                max_crashes=3,
                lease_seconds=3_600.0,
            )
            for _ in range(count)
        ]
        await jobs.enqueue(self.connection, new)

    async def settle(self, claim, now):
        settlement = decide(claim, Succeeded(result=b"null"), RetryPolicy(), chance=0.0)
        await jobs.settle(self.connection, [settlement], host="test", now=now)

    async def claim(self, now):
        request = jobs.ClaimRequest(queue="q", worker_id=WorkerId(uuid4()), count=self.slots, kinds=("work",))
        return await jobs.claim(self.connection, request, now=now)

    async def accounts(self):
        cursor = await self.connection.execute(
            "SELECT virtual_time, estimate_seconds, running FROM tenure.lanes ORDER BY tenant_id"
        )
        return await cursor.fetchall()

    async def floor(self):
        cursor = await self.connection.execute("SELECT floor FROM tenure.queues")
        return (await cursor.fetchone())[0]


async def play_both(store, policy, groups, chance, rounds):
    """Yields what each of them claimed, round by round."""
    under_way, seconds = [], 0
    for _ in range(rounds):
        seconds += chance.randint(1, 9)
        now = START + timedelta(seconds=seconds)
        happened = {}
        for lane in chance.sample(range(len(groups)), chance.randint(0, 2)):
            count = chance.randint(1, 6)
            happened.setdefault(lane, News()).arrived += count
            await store.enqueue(groups[lane].name, count)
        for run in chance.sample(under_way, min(len(under_way), chance.randint(0, 3))):
            claim, lane, started, charged = run
            item = happened.setdefault(lane, News())
            item.settled += 1
            item.used_seconds += seconds - started
            item.charged_seconds += charged
            under_way.remove(run)
            await store.settle(claim, now)
        claims = await store.claim(now)
        if happened:
            policy.fold(happened)
        chosen = policy.claim(store.slots - len(under_way))
        yield Counter(claim.tenant_id for claim in claims), Counter(groups[lane].name for lane, _ in chosen)
        by_tenant = {
            item.name: [(lane, charged) for lane, charged in chosen if groups[lane] is item] for item in groups
        }
        under_way += [(claim, *place(by_tenant[claim.tenant_id].pop(0), seconds)) for claim in claims]


def take_over(policy, accounts, floor):
    """Go on from the store's own numbers: their last digit may differ, and equal tags must stay equal."""
    policy.floor = floor
    for lane, (virtual_time, estimate_seconds, _) in enumerate(accounts):
        policy.virtual_time[lane] = virtual_time
        policy.estimate_seconds[lane] = estimate_seconds
        policy._place(lane)


def nobody_is_eligible(policy):
    return all(policy.standing(lane) == OUT for lane in range(len(policy.waiting)))


def place(chosen, seconds):
    lane, charged = chosen
    return lane, seconds, charged


@pytest.mark.parametrize("seed", range(8))
async def test_the_store_claims_the_same_jobs_and_keeps_the_same_accounts(database, seed):
    chance = random.Random(seed)
    headroom = chance.randint(0, 2)
    groups = [
        group(
            name, weight=chance.choice([0.5, 1.0, 4.0]), cap=chance.randint(1, 6), ceiling=chance.choice([3, 8, 1_000])
        )
        for name in NAMES[:5]
    ]
    policy = FairShare(load_of(groups, headroom=headroom))
    policy._opened = bytearray([1]) * len(groups)
    async with database.connection() as connection:
        store = Store(connection, slots=8)
        await store.open(groups, headroom)
        async for stored, simulated in play_both(store, policy, groups, chance, rounds=120):
            assert stored == simulated
            stored_accounts = await store.accounts()
            accounts = zip(policy.virtual_time, policy.estimate_seconds, policy.running, strict=True)
            for expected, found in zip(stored_accounts, accounts, strict=True):
                assert expected == pytest.approx(found)
            # The store claims in rounds; when nobody is eligible, the floor may be where a lane stood between two.
            assert await store.floor() == pytest.approx(policy.floor) or nobody_is_eligible(policy)
            take_over(policy, stored_accounts, await store.floor())
