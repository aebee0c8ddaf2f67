"""What people ask costs the same however long the backlog: every statement reads by an index, up to a bound."""

import json

import pytest
from operator_world import ACME, QUEUE, OperatorWorld

from tenure.core import limits
from tenure.store.statements import statement

BIGGEST = {"queue": QUEUE, "tenant_id": ACME, "count": 100}
STATEMENTS = {
    "why/ahead": {**BIGGEST, "priority": 0, "seq": 10**9},
    "why/loads": {**BIGGEST, "count": limits.RUNNING_COUNT_MAX},
    "why/rivals": BIGGEST,
    "why/standing": {**BIGGEST, "fresh_seconds": 30.0},
    "lanes/list": {**BIGGEST, "after": "", "running_count": 100, "waiting_count": 100},
    "queues/list": {"queue": None, "running_count": 100, "waiting_count": 100, "fresh_seconds": 30.0},
}
LARGE = {"jobs", "lanes", "workers", "lane_events"}
ROWS_MAX = 500
"""That one scan may read; the tables hold 20,000 and more."""


@pytest.fixture
async def crowded(engine_settings, engine_database):
    async with OperatorWorld.opened(engine_settings) as world:
        await world.execute(
            "BEGIN; SET LOCAL session_replication_role = replica; INSERT INTO tenure.jobs (id, tenant_id, queue, kind, "
            "args, state, max_attempts, max_crashes, lease_seconds, finished_at) SELECT gen_random_uuid(), "
            "CASE WHEN n % 2 = 0 THEN 'acme' ELSE 'tenant-' || n END, 'test', 'work', '{}', "
            "CASE WHEN n % 3 = 0 THEN 'queued' ELSE 'succeeded' END, 3, 3, 60, "
            "CASE WHEN n % 3 = 0 THEN NULL ELSE now() END FROM generate_series(1, 60000) AS n; COMMIT"
        )
        await world.execute(
            "INSERT INTO tenure.lanes (queue, tenant_id, backlogged, virtual_time) "
            "SELECT %s, 'tenant-' || n, true, n FROM generate_series(1, 20000) AS n",
            QUEUE,
        )
        await world.execute(
            "INSERT INTO tenure.workers (id, host, pid, queues, slots, version, last_beat_at) "
            "SELECT gen_random_uuid(), 'h', 1, ARRAY[%s], 1, '1', now() - n * interval '1 min' "
            "FROM generate_series(1, 20000) AS n",
            QUEUE,
        )
        await world.execute("ANALYZE tenure.jobs")
        await world.execute("ANALYZE tenure.lanes")
        await world.execute("ANALYZE tenure.workers")
        yield world


async def test_no_question_reads_more_with_a_longer_backlog(crowded):
    too_much = {}
    for name, parameters in STATEMENTS.items():
        query = b"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) " + statement(name)
        row = await (await crowded.connection.execute(query, parameters)).fetchone()
        for node in _nodes(json.loads(row[0])[0]["Plan"]):
            read = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
            if node.get("Relation Name") in LARGE and read > ROWS_MAX:
                too_much[name, node["Relation Name"]] = (node["Node Type"], read)

    assert {} == too_much


def _nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
