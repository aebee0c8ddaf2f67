"""The claim statement against the policy in `core.fairness`, on random lanes."""

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_world import KIND, QUEUE

from tenure.core.fairness import Lane, share_out
from tenure.core.ids import TenantId

# Powers of two, and few bits: sums and quotients are exact in Python and in SQL, so ties are ties in both.
WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0])
ESTIMATES = st.sampled_from([0.25, 1.0, 1.5, 8.0])
TIMES = st.integers(0, 48).map(lambda quarters: quarters / 4)
CAPS = st.sampled_from([0, 1, 2, 4, 8, 1_000_000])
CEILINGS = st.sampled_from([1, 3, 6, 1_000_000, 1_000_000])


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A queue and its lanes, and how a worker asks."""

    lanes: tuple[Lane, ...]
    paused: frozenset[str]
    slots: int | None
    headroom: int
    asks: int
    """Jobs asked for in all."""
    per_claim: int


@st.composite
def situations(draw):
    tenants = [f"t{number}" for number in range(draw(st.integers(2, 7)))]
    lanes = tuple(
        Lane(
            tenant_id=tenant,
            virtual_time=draw(TIMES),
            weight=draw(WEIGHTS),
            estimate_seconds=draw(ESTIMATES),
            running=draw(st.integers(0, 2)),
            cap=draw(CAPS),
            ceiling=draw(CEILINGS),
            waiting=draw(st.integers(0, 12)),
        )
        for tenant in tenants
    )
    running = sum(lane.running for lane in lanes)
    return Situation(
        lanes=lanes,
        paused=frozenset(draw(st.sets(st.sampled_from(tenants), max_size=1))),
        slots=draw(st.none() | st.integers(max(0, running - 2), running + 20)),
        headroom=draw(st.integers(0, 4)),
        # Fewer than the lanes want, most of the time: else everybody gets all, whatever the policy.
        asks=draw(st.integers(2, 20)),
        per_claim=draw(st.sampled_from([1, 3, 20, 20])),
    )


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(situation=situations())
async def test_claims_give_each_tenant_what_the_policy_says_and_charge_it(world, situation):
    await _arrange(world, situation)
    given_out = {lane.tenant_id: 0 for lane in situation.lanes}
    left = situation.asks
    while left > 0 and (claims := await world.claim(min(left, situation.per_claim))):
        left -= len(claims)
        for claim in claims:
            given_out[claim.tenant_id] += 1
    expected = _policy(situation)
    rows = {row["tenant_id"]: row for row in await world.rows("SELECT * FROM tenure.lanes")}

    assert expected == {tenant: count for tenant, count in given_out.items() if count}
    for lane in situation.lanes:
        count = given_out[lane.tenant_id]
        charged = lane.virtual_time + count * lane.estimate_seconds / lane.weight
        assert (charged, lane.running + count) == (
            rows[lane.tenant_id]["virtual_time"],
            rows[lane.tenant_id]["running"],
        )


def _policy(situation):
    running = sum(lane.running for lane in situation.lanes)
    unbounded = situation.slots is None
    free = situation.asks if unbounded else min(situation.asks, situation.slots - running)
    lendable = situation.asks if unbounded else situation.slots - situation.headroom - running
    open_lanes = [lane for lane in situation.lanes if lane.tenant_id not in situation.paused]
    return {tenant: count for tenant, count in share_out(open_lanes, free=free, lendable=lendable).items() if count}


async def _arrange(world, situation):
    await world.reset()
    await world.set_queue(
        slots=situation.slots, headroom=situation.headroom, running=sum(lane.running for lane in situation.lanes)
    )
    for lane in situation.lanes:
        await world.set_lane(
            lane.tenant_id,
            virtual_time=lane.virtual_time,
            weight=lane.weight,
            estimate_seconds=lane.estimate_seconds,
            running=lane.running,
            cap=lane.cap,
            ceiling=lane.ceiling,
            paused=lane.tenant_id in situation.paused,
            backlogged=True,
        )
        await world.main.execute(
            "INSERT INTO tenure.jobs "
            "(id, tenant_id, queue, kind, args, state, max_attempts, max_crashes, lease_seconds) "
            "SELECT gen_random_uuid(), %s, %s, %s, '{}', 'queued', 3, 3, 60 FROM generate_series(1, %s)",
            [TenantId(lane.tenant_id), QUEUE, KIND, lane.waiting],
        )
