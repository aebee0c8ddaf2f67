from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from api_fakes import (
    ACME,
    CONTENT,
    EXPORT_ID,
    FOREIGN_ID,
    MANIFEST,
    NOW,
    OTHER,
    UNKNOWN_ID,
    finished_view,
    package_file,
    sha256,
    view,
)

from tenure.core.errors import DatabaseUnavailableError, ExportActiveError
from tenure.core.export import Channel, Compression, DeliveryView, ExportFailure, ExportProgress, ExportStatus
from tenure.core.ids import JobId
from tenure.core.lifecycle import JobState

EXPORT_URL = f"/v1/exports/{EXPORT_ID}"


def test_a_new_export_is_accepted_with_the_way_to_watch_it(client, rooms):
    answer = client.post("/v1/exports", json={"dataset": "orders", "compression": "gzip", "filters": {"id": 7}})

    assert answer.status_code == 202
    assert answer.headers["location"] == EXPORT_URL
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["status"] == "queued"
    assert answer.json()["links"] == {"self": EXPORT_URL, "cancel": f"{EXPORT_URL}/cancel"}
    tenant_id, requested_by, spec = rooms.admitted[0]
    assert (tenant_id, spec.compression, spec.selections[0].filters[0].values) == (ACME, Compression.GZIP, (7,))
    assert requested_by in rooms.keys


def test_the_identical_running_export_is_200(client, rooms):
    rooms.admission_created = False
    answer = client.post("/v1/exports", json={})

    assert answer.status_code == 200
    assert answer.headers["location"] == EXPORT_URL


def test_another_request_during_a_running_export_is_409_with_a_link_to_it(client, rooms):
    rooms.fault = ExportActiveError(EXPORT_ID)
    answer = client.post("/v1/exports", json={})

    assert answer.status_code == 409
    assert answer.headers["retry-after"].isdigit()
    assert answer.json()["links"]["export"] == EXPORT_URL
    assert answer.json()["code"] == "export_active"
    assert answer.json()["retryable"] is True


def test_a_wrong_request_names_every_field(client, rooms):
    answer = client.post("/v1/exports", json={"dataset": "ordrs", "format": "xlsx", "x": 1})

    assert answer.status_code == 422
    assert {problem["pointer"] for problem in answer.json()["problems"]} == {"/dataset", "/format", "/x"}
    assert rooms.admitted == []


def test_a_finished_export_shows_everything_about_its_package(client):
    answer = client.get(EXPORT_URL)
    document = answer.json()

    assert answer.status_code == 200
    assert document["job_id"] == str(EXPORT_ID)
    assert document["status"] == "succeeded"
    assert document["created_at"] == "2030-01-02T03:04:05Z"
    assert document["expires_at"] == "2030-01-09T03:04:05Z"
    assert (document["rows"], document["bytes"]) == (3, len(CONTENT))
    assert document["manifest_sha256"] == sha256(MANIFEST)
    assert document["download_url"].startswith(f"https://exports.example/v1/downloads/{EXPORT_ID}/orders.csv?")
    assert document["download_url"] == document["files"][0]["download_url"]
    assert document["files"][0]["sha256"] == sha256(CONTENT)
    assert "retry-after" not in answer.headers
    assert "cancel" not in document["links"]


def test_several_files_are_downloaded_through_the_manifest(client, rooms):
    rooms.put(finished_view(package_file("a.csv"), package_file("b.csv")))
    document = client.get(EXPORT_URL).json()

    assert document["download_url"] == document["manifest_url"]
    assert len({file["download_url"] for file in document["files"]}) == 2


def test_a_running_export_shows_progress_and_when_to_ask_again(client, rooms):
    progress = ExportProgress(phase="read", rows_done=999, rows_expected=1000, bytes_done=5)
    rooms.put(view(status=ExportStatus.RUNNING, attempt=1, progress=progress))
    answer = client.get(EXPORT_URL)

    assert answer.headers["retry-after"] == "3"
    assert answer.json()["progress"]["percent"] == 99
    assert answer.json()["download_url"] is None


@pytest.mark.parametrize(("wait_seconds", "retry_after"), [(-5, "1"), (0.2, "1"), (10.5, "11"), (9000, "60")])
def test_a_waiting_retry_says_when_in_whole_seconds(client, rooms, wait_seconds, retry_after):
    rooms.put(view(status=ExportStatus.RUNNING, next_retry_at=NOW + timedelta(seconds=wait_seconds)))

    assert client.get(EXPORT_URL).headers["retry-after"] == retry_after


def test_a_failed_export_is_still_200_and_says_why(client, rooms):
    failure = ExportFailure(code="row_limit_exceeded", summary="too many rows", phase="plan")
    rooms.put(view(status=ExportStatus.FAILED, finished_at=NOW, failure=failure))
    answer = client.get(EXPORT_URL)

    assert answer.status_code == 200
    assert answer.json()["failure"] == {"code": "row_limit_exceeded", "summary": "too many rows", "phase": "plan"}


@pytest.mark.parametrize("changes", [{"status": ExportStatus.EXPIRED}, {"expires_at": NOW}])
def test_an_expired_export_keeps_its_record_without_links(client, rooms, changes):
    rooms.put(finished_view(**changes))
    document = client.get(EXPORT_URL).json()

    assert document["download_url"] is document["manifest_url"] is document["files"][0]["download_url"] is None
    assert document["files"][0]["sha256"] == sha256(CONTENT)


def test_deliveries_are_shown(client, rooms):
    delivery = DeliveryView(
        id=JobId(UUID(int=3)),
        channel=Channel.WEBHOOK,
        target="https://example.com/hook",
        state=JobState.RETRY_WAIT,
        attempts=2,
        last_code="delivery_failed",
        delivered_at=None,
    )
    rooms.put(finished_view(deliveries=(delivery,)))

    assert client.get(EXPORT_URL).json()["deliveries"][0]["state"] == "retry_wait"


def test_an_unchanged_export_is_304(client, rooms):
    etag = client.get(EXPORT_URL).headers["etag"]
    rooms.now = NOW + timedelta(seconds=10)
    again = client.get(EXPORT_URL, headers={"if-none-match": etag})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    rooms.put(finished_view(attempt=2))
    assert client.get(EXPORT_URL, headers={"if-none-match": etag}).status_code == 200


def test_a_304_of_an_unfinished_export_still_says_when_to_ask_again(client, rooms):
    rooms.put(view())
    etag = client.get(EXPORT_URL).headers["etag"]

    assert client.get(EXPORT_URL, headers={"if-none-match": etag}).headers["retry-after"] == "5"


def test_head_has_the_headers_of_get(client):
    for url in (EXPORT_URL, "/v1/exports", "/v1/datasets", "/healthz", "/openapi.json", "/", "/errors"):
        head, get = client.head(url), client.get(url)
        assert (head.status_code, head.content) == (200, b"")
        assert dict(head.headers) == dict(get.headers), url


def test_a_list_is_paged_newest_first_over_the_own_exports_only(client, rooms):
    ids = [JobId(UUID(int=number)) for number in range(1, 8)]
    rooms.views.clear()
    for export_id in ids:
        rooms.put(view(id=export_id))
        rooms.put(view(id=JobId(UUID(int=export_id.int + 100)), tenant_id=OTHER))
    seen, cursor = [], None
    while True:
        page = client.get("/v1/exports", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [UUID(item["job_id"]) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == ids[::-1]


def test_the_last_full_page_has_no_cursor(client, rooms):
    assert client.get("/v1/exports?limit=1").json()["next_cursor"] is None


def test_listed_exports_carry_no_signed_links(client):
    assert "signature" not in client.get("/v1/exports").text


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_cancel_is_202_while_the_worker_must_see_it_and_200_when_it_is_over(client, rooms, verb):
    def cancel():
        return client.delete(EXPORT_URL) if verb == "delete" else client.post(f"{EXPORT_URL}/cancel")

    rooms.put(view(status=ExportStatus.RUNNING))
    assert [cancel().status_code, cancel().status_code] == [202, 202]
    rooms.put(view())
    first, second = cancel(), cancel()
    assert [first.status_code, second.status_code] == [200, 200]
    assert first.content == second.content
    rooms.put(finished_view())
    assert (cancel().status_code, cancel().json()["code"]) == (409, "conflict")


def test_datasets_show_what_can_be_asked_for_and_nothing_behind_it(client):
    answer = client.get("/v1/datasets")

    assert answer.json()["datasets"][0]["columns"][1] == {"name": "total", "description": "in cents"}
    assert answer.json()["datasets"][0]["filters"] == {"id": ["eq", "range"]}
    assert answer.json()["formats"] == ["csv"]
    assert "secret" not in answer.text


def test_an_unavailable_database_is_503_without_details(client, rooms):
    rooms.fault = DatabaseUnavailableError("could not connect to 10.0.0.5 as tenure")
    answer = client.get(EXPORT_URL)

    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert "10.0.0.5" not in answer.text


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("GET", ""),
        ("HEAD", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("GET", "/files/orders.csv"),
        ("GET", "/files/manifest.json"),
    ],
)
def test_another_tenants_export_is_answered_exactly_like_an_unknown_one(client, method, suffix):
    answers = [
        client.request(method, f"/v1/exports/{item}{suffix}")
        for item in (FOREIGN_ID, UNKNOWN_ID, "x", str(EXPORT_ID).upper())
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert len({(answer.content, tuple(answer.headers.items())) for answer in answers}) == 1


def test_times_leave_in_utc_whatever_zone_they_came_in(client, rooms):
    rooms.put(view(created_at=datetime.fromisoformat("2030-01-02T05:04:05.5+02:00")))

    assert client.get(EXPORT_URL).json()["created_at"] == "2030-01-02T03:04:05.500000Z"


def test_a_shorter_link_time_of_the_export_is_kept(client, rooms):
    finished = finished_view()
    rooms.put(replace(finished, spec=replace(finished.spec, link_seconds=60)))
    url = client.get(EXPORT_URL).json()["download_url"]
    rooms.now = NOW + timedelta(seconds=70)

    assert client.get(url).status_code == 410
