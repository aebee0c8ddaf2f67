"""Every order of a few statements on two or three connections, with the invariants looked at after each step.

A step that has to wait (PostgreSQL says so) stays under way while the others go on, as it would in life; an order in
which a connection would have to do its next step while it still waits does not exist and is left out.
"""

import asyncio
from dataclasses import dataclass, field

import pytest
from store_world import CANCELLED, FAILURE, RELEASE, SUCCESS

from tenure.core.lifecycle import TERMINAL, JobState
from tenure.store import jobs


async def test_worker_and_reaper_and_canceller(world):
    """A worker that beats and succeeds, a reaper that claims for another worker, and somebody who cancels."""
    assert 60 == await _play_all(
        world, [[_beat, _settle(SUCCESS)], [_reap, _claim, _settle_newest(SUCCESS)], [_cancel]]
    )


async def test_failing_worker_and_reaper_and_canceller(world):
    assert 60 == await _play_all(
        world, [[_settle(FAILURE)], [_reap, _claim, _beat_newest], [_cancel, _settle(CANCELLED)]]
    )


async def test_releasing_worker_and_two_claimers(world):
    assert 60 == await _play_all(
        world, [[_settle(RELEASE), _claim], [_reap, _claim, _settle_newest(SUCCESS)], [_claim]]
    )


async def test_open_transactions_of_worker_and_reaper(world):
    """Statements and commits apart, so that the other side meets a change under way."""
    assert 12 <= await _play_all(world, [[_begin, _settle(SUCCESS), _commit], [_begin, _reap, _commit]])


async def test_open_transactions_of_canceller_and_worker(world):
    assert 12 <= await _play_all(world, [[_begin, _cancel, _commit], [_begin, _settle(FAILURE), _commit, _claim]])


async def test_open_transaction_of_canceller_and_a_claimer_of_a_waiting_job(world):
    """Invariant 15: once a cancel of a waiting job is committed, it never starts."""
    assert 10 <= await _play_all(
        world, [[_begin, _cancel, _commit], [_claim, _settle_newest(SUCCESS), _claim]], claimed=False
    )


# ---------------------------------------------------------------- the game


@dataclass
class Actor:
    """One connection. It may have one step under way that waits for another connection."""

    connection: object
    under_way: "asyncio.Task | None" = None


@dataclass
class Game:
    """One job under attack, and what was seen of it so far."""

    world: object
    job_id: object
    first: object  # the claim whose owner acts as if nothing had happened
    newest: object
    states: list = field(default_factory=list)
    attempts: list = field(default_factory=list)
    tokens: dict = field(default_factory=dict)
    ends: list = field(default_factory=list)  # every end somebody was told of, with its attempt

    async def look(self):
        """The invariants that can be seen from outside at any moment."""
        job = await self.world.one(
            "SELECT job.*, ARRAY(SELECT attempt FROM tenure.runs WHERE job_id = job.id ORDER BY attempt) AS recorded "
            "FROM tenure.jobs AS job WHERE id = %s",
            self.job_id,
        )
        leased = [job[name] is not None for name in ("lease_owner", "lease_token", "lease_expires_at")]
        state, attempt = JobState(job["state"]), job["attempt"]

        assert [state is JobState.RUNNING] * 3 == leased, "invariant 1: running means leased"
        if self.attempts:
            assert attempt - self.attempts[-1] in (0, 1), "invariant 2: an attempt rises by one and never falls"
        if state is JobState.RUNNING:
            known = self.tokens.setdefault(attempt, job["lease_token"])
            assert known == job["lease_token"], "invariant 2: one token for one attempt"
        assert len(set(self.tokens.values())) == len(self.tokens), "invariant 2: no token twice"
        ended = attempt - (state is JobState.RUNNING)
        assert list(range(1, ended + 1)) == job["recorded"], (
            "invariants 3 and 5: each ended run recorded once, before the next"
        )
        if self.states and self.states[-1] in TERMINAL:
            assert self.states[-1] is state, "invariant 7: an end is an end"
        self.states.append(state)
        self.attempts.append(attempt)

    async def judge(self):
        """What must be true in the end."""
        await self.look()
        job = await self.world.job(self.job_id)
        recorded = {run["attempt"]: run["outcome"] for run in await self.world.runs(self.job_id)}
        told = [attempt for attempt, _ in self.ends]

        assert sorted(set(told)) == sorted(told), "invariants 3 and 13: one winner for each run"
        assert set(recorded) == set(told), "nobody was told of an end that is not recorded, nor the other way round"
        if job["cancel_requested_at"] is not None and job["state"] != "running":
            assert job["state"] in ("cancelled", "succeeded"), "invariant 15: cancelled unless the success was first"
        for attempt, state in self.ends:
            assert not (state in TERMINAL and attempt < job["attempt"]), "no run after an end"


async def _play_all(world, scripts, *, claimed=True):
    """Play every order; the number of orders that exist."""
    connections = [await world.connect() for _ in scripts]
    played = 0
    for order in _orders([len(script) for script in scripts]):
        await world.reset()
        job_id = await world.enqueue()
        claim = await world.claim_one(job_id) if claimed else None
        game = Game(world, job_id, claim, claim)
        if await _play(game, scripts, [Actor(connection) for connection in connections], order):
            played += 1
    return played


async def _play(game, scripts, actors, order):
    positions = [0] * len(scripts)
    possible = True
    await game.look()
    for index in order:
        actor = actors[index]
        if await _still_waits(game.world, actor):
            possible = False
            break
        step = scripts[index][positions[index]]
        positions[index] += 1
        actor.under_way = asyncio.ensure_future(step(game, actor.connection))
        await _done_or_blocked(game.world, actor)
        await game.look()
    if not possible:
        await _undo(actors)
        return False
    for actor in actors:
        if actor.under_way is not None:
            await actor.under_way
    await game.judge()
    return True


async def _done_or_blocked(world, actor):
    pid = actor.connection.info.backend_pid
    async with asyncio.timeout(20):
        while not actor.under_way.done():
            if (await world.one("SELECT pg_blocking_pids(%s) AS pids", pid))["pids"]:
                return
            await asyncio.sleep(0)
    actor.under_way.result()


async def _still_waits(world, actor):
    if actor.under_way is None:
        return False
    await _done_or_blocked(world, actor)
    return not actor.under_way.done()


async def _undo(actors):
    """Let go of every lock, so that whoever waits can end."""
    waiting = [actor.under_way for actor in actors if actor.under_way is not None]
    while True:
        for actor in actors:
            if actor.under_way is None or actor.under_way.done():
                await actor.connection.execute("ROLLBACK")
        if all(task.done() for task in waiting):
            break
        await asyncio.sleep(0.001)
    await asyncio.gather(*waiting, return_exceptions=True)
    for actor in actors:
        await actor.connection.execute("ROLLBACK")


def _orders(lengths):
    """Every way of merging scripts of these lengths: each order names the script whose next step it is."""
    if not any(lengths):
        yield ()
        return
    for index, length in enumerate(lengths):
        if length:
            rest = [*lengths[:index], length - 1, *lengths[index + 1 :]]
            for order in _orders(rest):
                yield (index, *order)


# ---------------------------------------------------------------- the steps


async def _begin(game, connection):
    await connection.execute("BEGIN")


async def _commit(game, connection):
    await connection.execute("COMMIT")


async def _beat(game, connection):
    await _beat_as(game.first, connection)


async def _beat_newest(game, connection):
    await _beat_as(game.newest, connection)


async def _beat_as(claim, connection):
    if claim is not None:
        await jobs.heartbeat(connection, [claim.fence])


def _settle(end):
    async def settle(game, connection):
        await _settle_as(game, game.first, end, connection)

    return settle


def _settle_newest(end):
    async def settle(game, connection):
        await _settle_as(game, game.newest, end, connection)

    return settle


async def _settle_as(game, claim, end, connection):
    if claim is not None:
        ends = await game.world.settle(claim, end, connection=connection)
        game.ends += [(claim.fence.attempt, end.state) for end in ends]


async def _reap(game, connection):
    ends = await game.world.reap(connection=connection)
    game.ends += [(end.attempt, end.state) for end in ends]


async def _claim(game, connection):
    claims = await game.world.claim(1, connection=connection)
    assert len(claims) <= 1, "invariant 4: never more than asked for"
    for claim in claims:
        game.newest = claim


async def _cancel(game, connection):
    await game.world.cancel(game.job_id, connection=connection)


def test_the_orders_are_all_there_are():
    assert 60 == len(set(_orders([2, 3, 1])))


@pytest.mark.parametrize("lengths", [[1], [0, 2]])
def test_a_single_script_has_one_order(lengths):
    assert 1 == len(set(_orders(lengths)))
