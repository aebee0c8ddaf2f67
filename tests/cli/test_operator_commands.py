"""`tenure why`, `tenants`, `queues` and `fairness`, as typed, on a real database."""

import asyncio
import json
import sys
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.cli.main import main
from tenure.core.ids import TenantId, WorkerId
from tenure.core.job import NewJob
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.store import jobs, queues, workers
from tenure.store.database import DatabaseSettings, connect
from tenure.store.workers import WorkerIdentity

DATABASE = "operator_commands"
RUNNING, WAITING, FOREIGN = new_job_id(), new_job_id(), new_job_id()


@pytest.fixture(scope="module")
def settings(postgres_url, template):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {template}")
    settings = DatabaseSettings(url=make_conninfo(postgres_url, dbname=DATABASE))
    asyncio.run(_fill(settings))
    return settings


async def _fill(settings):
    """A worker with one slot, a job of acme that runs, one of acme and one of other that wait."""
    connection = await connect(settings)
    await queues.ensure(connection, "exports")
    worker_id = WorkerId(uuid4())
    await workers.register(
        connection, WorkerIdentity(id=worker_id, host="h", pid=1, queues=("exports",), slots=1, version="1")
    )
    await enqueue(connection, [_job(RUNNING, "acme")])
    await jobs.claim(connection, jobs.ClaimRequest(queue="exports", worker_id=worker_id, count=1, kinds=("work",)))
    await enqueue(connection, [_job(WAITING, "acme"), _job(FOREIGN, "other")])
    await connection.close()


def _job(job_id, tenant):
    return NewJob(
        id=job_id,
        tenant_id=TenantId(tenant),
        queue="exports",
        kind="work",
        args=b"{}",
        max_attempts=3,
        max_crashes=3,
        lease_seconds=600.0,
    )


@pytest.fixture
def tenure(settings, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENURE_DATABASE_URL", settings.url)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["tenure", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        return ended.value.code or 0, written.out, written.err

    return run


def test_why_says_it_in_a_sentence_with_numbers_below(tenure):
    code, text, _ = tenure("why", "acme", WAITING)
    lines = text.splitlines()

    assert 0 == code
    assert "It is next; it starts with the first slot that becomes free." == lines[0]
    assert "  reason    next_in_line" in lines
    assert "  position  1 in the tenant's lane" in lines
    assert "  queue     1 of unlimited slots in use, 0 free, headroom 0; 0 tenants come first" in lines
    assert "  workers   1 with 1 slots" in lines


def test_why_answers_in_json_too(tenure):
    running = json.loads(tenure("why", "acme", RUNNING, "--json")[1])
    tenant = json.loads(tenure("why", "other", "--queue", "exports", "--json")[1])

    assert ("running", "h") == (running["reason"], running["owner"]["host"])
    assert (1, "other") == (tenant["waiting"], tenant["tenant_id"])


@pytest.mark.parametrize("words", [("acme", FOREIGN), ("acme", new_job_id()), ("nobody", "--queue", "exports")])
def test_why_tells_nothing_about_others(tenure, words):
    code, text, error = tenure("why", *words)

    assert (1, "") == (code, text)
    assert error.startswith("error: no such ")


def test_why_needs_a_job_or_a_queue(tenure):
    assert 2 == tenure("why", "acme")[0]
    assert 2 == tenure("why", "acme", WAITING, "--queue", "exports")[0]


def test_a_tenant_is_set_and_listed(tenure):
    code, text, _ = tenure(
        "tenants", "set", "newcomer", "--queue", "exports", "--weight", "2.5", "--cap", "3", "--pause"
    )
    listed = tenure("tenants", "list", "--queue", "exports")[1].splitlines()

    assert (0, "newcomer in exports: weight 2.5, cap 3, ceiling unlimited, paused\n") == (code, text)
    assert ["tenant", "weight", "cap", "ceiling", "paused", "running", "waiting", "ahead", "by"] == listed[0].split()
    assert ["newcomer", "2.5", "3", "unlimited", "yes", "0", "0", "0.0", "s"] == listed[2].split()
    resumed = tenure("tenants", "set", "newcomer", "--queue", "exports", "--resume", "--cap", "unlimited", "--json")[1]
    assert (False, None, 2.5) == tuple(json.loads(resumed)[name] for name in ("paused", "cap", "weight"))


def test_a_queue_is_set_and_listed(tenure):
    code, text, _ = tenure("queues", "set", "exports", "--slots", "4", "--headroom", "1", "--pause")
    assert (0, "exports: slots 4, headroom 1, paused\n") == (code, text)
    (listed,) = json.loads(tenure("queues", "list", "--json")[1])
    assert (4, 1, 2, True) == (
        listed["settings"]["slots"],
        listed["running"],
        listed["waiting"],
        listed["settings"]["paused"],
    )

    assert (
        "exports: slots unlimited, headroom 0, not paused\n"
        == tenure("queues", "set", "exports", "--slots", "unlimited", "--headroom", "0", "--resume")[1]
    )
    assert ["exports", "unlimited", "0", "no", "1", "2", "1", "1"] == tenure("queues", "list")[1].splitlines()[
        1
    ].split()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("tenants", "set", "acme", "--queue", "exports"), 2, "must change something: weight, cap, ceiling, paused"),
        (("tenants", "set", "acme", "--queue", "exports", "--weight", "0"), 2, "/weight: must be a number from 0.001"),
        (("tenants", "set", "acme", "--queue", "exports", "--cap", "few"), 2, "few"),
        (("tenants", "set", "acme", "--queue", "nowhere", "--cap", "1"), 1, "no such queue"),
        (("queues", "set", "exports", "--slots", "-1"), 2, "/slots: must be a whole number from 0 to 1,000,000"),
        (("queues", "set", "nowhere", "--pause"), 1, "no such queue"),
        (("tenants", "list", "--queue", "nowhere"), 1, "no such queue"),
        (("fairness", "--since", "soon"), 2, "such as 30m"),
        (("fairness", "--since", "90d"), 2, "31 days"),
        (("fairness", "--queue", "nowhere"), 1, "no such queue"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_with_an_exit_code(tenure, words, code, message):
    ended, text, error = tenure(*words)

    assert (code, "") == (ended, text)
    assert message in error


def test_shares_are_shown_by_queue_and_tenant(tenure):
    text = tenure("fairness", "--since", "1h")[1]
    (queue,) = json.loads(tenure("fairness", "--queue", "exports", "--json")[1])["queues"]

    assert text.startswith("exports: ")
    assert ["acme", "1"] == text.splitlines()[2].split()[:2]
    assert "100.0%" in text.splitlines()[2]
    assert "owed less than its share due" in text
    assert ["acme", "other"] == [tenant["used"]["tenant_id"] for tenant in queue["tenants"]]
    assert 0.5 == queue["jain_index"]


def test_the_audit_log_says_it_was_the_command_line(tenure, settings):
    tenure("queues", "set", "exports", "--headroom", "0")
    with psycopg.connect(settings.url) as connection:
        last = connection.execute("SELECT actor, action FROM tenure.audit_log ORDER BY id DESC LIMIT 1").fetchone()

    assert ("cli", "queue.tune") == last
