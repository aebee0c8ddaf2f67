"""Queues, tenants, reasons and shares over HTTP."""

from datetime import timedelta

import pytest
from api_fakes import ACME, EXPORT_ID, NOW, OTHER
from starlette.testclient import TestClient

from tenure.core.explain import explain_job
from tenure.core.fairness import Lane
from tenure.core.ids import TenantId
from tenure.core.keys import Scope
from tenure.core.lifecycle import JobState
from tenure.core.place import Load, Place, QueueFacts
from tenure.core.run import RunOutcome
from tenure.core.shares import FairnessReport, Used, queue_shares
from tenure.core.tuning import (
    UNLIMITED,
    LaneChanges,
    LaneSettings,
    LaneView,
    QueueChanges,
    QueueSettings,
    QueueView,
)
from tenure.core.why import Attempt, JobFacts

WHY_URL = f"/v1/jobs/{EXPORT_ID}/why"
LANE_URL = "/v1/queues/exports/tenants/acme"
READS = ["/v1/queues", "/v1/queues/exports/tenants", "/v1/fairness"]
CHANGES = [("/v1/queues/exports", {"slots": 4}), (LANE_URL, {"weight": 2})]


@pytest.fixture
def desk(rooms):
    desk = rooms.operator
    settings = QueueSettings(queue="exports", slots=8, headroom=1, paused=False)
    desk.queues["exports"] = QueueView(settings=settings, running=2, waiting=1000, workers=1, worker_slots=4, floor=3.5)
    for tenant in (ACME, OTHER, TenantId("a b/ü")):
        desk.lanes[tenant] = LaneView(
            settings=LaneSettings(queue="exports", tenant_id=tenant, weight=2.0, cap=None, ceiling=5, paused=True),
            running=1,
            waiting=0,
            virtual_time=4.0,
            lead_seconds=1.0,
            estimate_seconds=10.0,
        )
    desk.whys[EXPORT_ID] = explain_job(waiting_job(), crowded_place(), (failed_attempt(),))
    used = Used(
        queue="exports",
        tenant_id=ACME,
        weight=1.0,
        worker_seconds=60.0,
        runs=2,
        running=1,
        waiting=True,
        outcomes={RunOutcome.SUCCEEDED: 2},
        wait_seconds_p50=1.0,
        wait_seconds_p95=2.0,
        wait_seconds_max=3.0,
        first_waits_seconds=4.0,
    )
    desk.report = FairnessReport(since=NOW, until=NOW, queues=(queue_shares("exports", (used,)),), is_complete=True)
    return desk


@pytest.fixture
def operator(app, rooms, desk):
    key = rooms.make_key(None, Scope.OPERATOR, seed=2)
    return TestClient(app, headers={"authorization": f"Bearer {key}"}, follow_redirects=False)


def waiting_job():
    return JobFacts(
        id=EXPORT_ID,
        tenant_id=ACME,
        queue="exports",
        kind="export",
        state=JobState.QUEUED,
        priority=0,
        seq=7,
        attempt=1,
        created_at=NOW,
        queued_at=NOW + timedelta(seconds=90),
        claimed_at=NOW,
        finished_at=None,
        not_before=None,
        cancel_requested_at=None,
        lease_expires_at=None,
        host=None,
        pid=None,
        seen_at=NOW + timedelta(seconds=100),
    )


def failed_attempt():
    return Attempt(
        attempt=1,
        delayed_seconds=0.0,
        waited_seconds=10.0,
        ran_seconds=20.0,
        outcome=RunOutcome.FAILED,
        error_code="query_timeout",
        error_message="could not connect to secret-host",
        error_phase="read",
        host="secret-worker",
        finished_at=NOW + timedelta(seconds=30),
    )


def crowded_place():
    own, other = (
        Lane(
            tenant_id=tenant,
            virtual_time=time,
            weight=1.0,
            estimate_seconds=10.0,
            running=running,
            cap=5,
            ceiling=1_000_000,
            waiting=3,
        )
        for tenant, time, running in ((ACME, 20.0, 0), (OTHER, 5.0, 1))
    )
    queue = QueueFacts(name="exports", slots=1, headroom=0, paused=False, floor=5.0, workers=3, worker_slots=9)
    load = Load(tenant_id=OTHER, weight=1.0, running=1, running_seconds=4.0, left_seconds=6.0, longest_left_seconds=6.0)
    return Place(
        queue=queue,
        lane=own,
        is_lane_paused=False,
        ahead=0,
        loads=(load,),
        rivals=(other,),
        are_rivals_complete=True,
    )


# ------------------------------------------------------------ who may


@pytest.mark.parametrize("url", READS)
def test_only_operators_may_look(client, anonymous, desk, url):
    assert (401, 403) == (anonymous.get(url).status_code, client.get(url).status_code)
    assert 'scope="operator"' in client.get(url).headers["www-authenticate"]


@pytest.mark.parametrize(("url", "body"), CHANGES)
def test_only_operators_may_change(client, anonymous, desk, url, body):
    assert (401, 403) == (anonymous.patch(url, json=body).status_code, client.patch(url, json=body).status_code)
    assert [] == desk.asked


def test_a_tenants_key_is_no_operators_whatever_its_scopes_say(app, rooms, desk):
    key = rooms.make_key(OTHER, Scope.OPERATOR, Scope.EXPORTS_READ, seed=3)
    caller = TestClient(app, headers={"authorization": f"Bearer {key}"})

    assert 403 == caller.get("/v1/queues").status_code
    assert 403 == caller.patch(LANE_URL, json={"weight": 2}).status_code
    assert 404 == caller.get(WHY_URL).status_code


# ------------------------------------------------------------ look and change


def test_queues_are_listed(operator):
    assert operator.get("/v1/queues").json()["items"] == [
        {
            "queue": "exports",
            "slots": 8,
            "headroom": 1,
            "paused": False,
            "running": 2,
            "waiting": 1000,
            "workers": 1,
            "worker_slots": 4,
        }
    ]


def test_tenants_are_listed_a_page_at_a_time(operator):
    first = operator.get("/v1/queues/exports/tenants?limit=2").json()
    second = operator.get(f"/v1/queues/exports/tenants?limit=2&cursor={first['next_cursor']}").json()
    tenants = [item["tenant"] for page in (first, second) for item in page["items"]]

    assert ["a b/ü", "acme", "other"] == tenants
    assert second["next_cursor"] is None
    assert (None, 5, True) == tuple(first["items"][0][name] for name in ("cap", "ceiling", "paused"))


def test_a_change_says_who_asked_and_only_what_was_given(operator, desk):
    queue = operator.patch("/v1/queues/exports", json={"slots": None, "paused": True})
    lane = operator.patch(LANE_URL, json={"weight": 2, "cap": None, "ceiling": 5})
    (actor, name, queue_changes), (_, _, tenant, lane_changes) = desk.asked

    assert (200, 200) == (queue.status_code, lane.status_code)
    assert {"queue": "exports", "slots": 8, "headroom": 1, "paused": False} == queue.json()
    assert {
        "queue": "exports",
        "tenant": "acme",
        "weight": 2.0,
        "cap": None,
        "ceiling": 5,
        "paused": True,
    } == lane.json()
    assert ("exports", ACME) == (name, tenant)
    assert len(actor) == 16
    assert QueueChanges(slots=UNLIMITED, paused=True) == queue_changes
    assert LaneChanges(weight=2, cap=UNLIMITED, ceiling=5) == lane_changes


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ("{}", 422, [""]),
        ('{"weight": 0}', 422, ["/weight"]),
        ('{"weight": null, "paused": null}', 422, ["/weight", "/paused"]),
        ('{"wieght": 2}', 422, ["/wieght"]),
        ('{"cap": -1, "ceiling": "5", "paused": "yes"}', 422, ["/cap", "/ceiling", "/paused"]),
        ("[]", 422, [""]),
        ('{"weight": 1, "weight": 2}', 400, ["/weight"]),
        ('{"weight": NaN}', 400, ["/weight"]),
        ('{"weight": 1e999}', 400, ["/weight"]),
        ("{", 400, [""]),
    ],
)
def test_a_wrong_change_is_refused_field_by_field(operator, desk, body, status, fields):
    answer = operator.patch(LANE_URL, content=body, headers={"content-type": "application/json"})

    assert (status, fields) == (answer.status_code, [item["pointer"] for item in answer.json()["problems"]])
    assert [] == desk.asked


def test_a_body_that_is_no_json_is_refused(operator):
    assert 415 == operator.patch(LANE_URL, content="weight=2").status_code


@pytest.mark.parametrize("queue", ["nowhere", "%00", "x" * 65])
def test_an_unknown_queue_is_not_found(operator, queue):
    assert 404 == operator.get(f"/v1/queues/{queue}/tenants").status_code
    assert 404 == operator.patch(f"/v1/queues/{queue}", json={"paused": True}).status_code
    assert 404 == operator.patch(f"/v1/queues/{queue}/tenants/acme", json={"paused": True}).status_code


@pytest.mark.parametrize(
    ("url", "parameter"),
    [
        ("/v1/queues?x=1", "x"),
        ("/v1/queues/exports/tenants?limit=0", "limit"),
        ("/v1/queues/exports/tenants?cursor=!", "cursor"),
        ("/v1/queues/exports/tenants?cursor=", "cursor"),
        ("/v1/fairness?since=yesterday", "since"),
        (f"{WHY_URL}?tenant=other", "tenant"),
    ],
)
def test_a_wrong_parameter_is_named(operator, url, parameter):
    answer = operator.get(url)

    assert (422, parameter) == (answer.status_code, answer.json()["problems"][0]["pointer"])


# ------------------------------------------------------------ why and how much


def test_an_operator_learns_everything_about_a_waiting_job(operator):
    why = operator.get(WHY_URL).json()

    assert ("others_are_owed_more", 1, "queued") == (why["reason"], why["position"], why["state"])
    assert (1, 1, 0) == tuple(why["queue_numbers"][name] for name in ("running", "tenants_ahead", "free"))
    assert (15.0, 0.0, 0.5) == tuple(why["lane"][name] for name in ("lead_seconds", "share_used", "share_due"))
    assert why["expected_start"]["earliest_seconds"] <= why["expected_start"]["latest_seconds"]
    assert "secret-worker" == why["timeline"]["attempts"][0]["host"]
    assert [20, 20, 60] == [why["timeline"][f"{part}_seconds"] for part in ("waited", "ran", "delayed")]


def test_a_tenant_learns_about_its_own_job_and_nothing_about_others(client, desk):
    answer = client.get(WHY_URL)
    why = answer.json()

    assert ("others_are_owed_more", 1) == (why["reason"], why["position"])
    assert "query_timeout" == why["timeline"]["attempts"][0]["error_code"]
    assert (None, None, None) == (why["lane"], why["queue_numbers"], why["owner"])
    assert "secret" not in answer.text
    assert 'other"' not in answer.text


def test_another_tenants_job_answers_like_an_unknown_one(app, rooms, desk):
    key = rooms.make_key(OTHER, Scope.EXPORTS_READ, seed=4)
    stranger = TestClient(app, headers={"authorization": f"Bearer {key}"})
    foreign = stranger.get(WHY_URL)
    unknown = stranger.get("/v1/jobs/018f0000-0000-7000-8000-00000000ffff/why")

    assert (404, foreign.json()) == (unknown.status_code, unknown.json())
    assert 404 == stranger.get("/v1/jobs/not-an-id/why").status_code


def test_shares_are_told_for_the_time_asked(operator, desk):
    document = operator.get("/v1/fairness?since=2h30m&queue=exports").json()
    operator.get("/v1/fairness")
    (tenant,) = document["queues"][0]["tenants"]

    assert [("exports", 9000), (None, 3600)] == desk.asked
    assert (1.0, 60.0) == (document["queues"][0]["jain_index"], document["queues"][0]["worker_seconds"])
    assert (ACME, 1.0, {"succeeded": 2}) == (tenant["tenant"], tenant["share"], tenant["outcomes"])


def test_the_described_changes_are_the_ones_that_are_read(operator):
    schemas = operator.get("/openapi.json").json()["components"]["schemas"]

    assert set(LaneChanges.__slots__) == set(schemas["LaneChanges"]["properties"])
    assert set(QueueChanges.__slots__) == set(schemas["QueueChanges"]["properties"])
