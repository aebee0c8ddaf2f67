import asyncio
import base64
import hashlib
from itertools import pairwise

import pytest
from api_fakes import ACME, CONTENT, EXPORT_ID, MANIFEST, NOW, finished_view, package_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.api.downloads import content_disposition
from tenure.core.errors import PackageMismatchError
from tenure.core.export import ExportStatus

FILE_URL = f"/v1/exports/{EXPORT_ID}/files/orders.csv"


@pytest.fixture
def link(client):
    return client.get(f"/v1/exports/{EXPORT_ID}").json()["download_url"].removeprefix("https://exports.example")


def test_a_file_is_downloaded_with_a_key(client, rooms):
    answer = client.get(FILE_URL)

    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    assert answer.headers["repr-digest"] == f"sha-256=:{base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()}:"
    assert answer.headers["content-disposition"].startswith('attachment; filename="orders.csv"')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["accept-ranges"] == "bytes"
    assert "content-encoding" not in answer.headers


def test_a_file_is_downloaded_with_a_signed_link_and_no_key(anonymous, link):
    assert anonymous.get(link).content == CONTENT


def test_the_manifest_is_a_file_too(client):
    document = client.get(f"/v1/exports/{EXPORT_ID}").json()

    assert client.get(document["links"]["manifest"]).content == MANIFEST
    assert client.get(document["manifest_url"]).content == MANIFEST


@pytest.mark.parametrize("range_header", [None, "bytes=5-9"])
def test_head_has_the_headers_of_get_and_no_body(client, range_header):
    """RFC 9110 defines Range for GET alone, so HEAD describes the whole file even with one."""
    head = client.head(FILE_URL, headers={"range": range_header} if range_header else {})

    assert head.content == b""
    assert dict(head.headers) == dict(client.get(FILE_URL).headers)


def test_one_range_is_sent_as_a_part(client):
    answer = client.get(FILE_URL, headers={"range": "bytes=100-299"})

    assert (answer.status_code, answer.content) == (206, CONTENT[100:300])
    assert answer.headers["content-range"] == f"bytes 100-299/{len(CONTENT)}"
    assert answer.headers["repr-digest"] == client.get(FILE_URL).headers["repr-digest"]


def test_several_ranges_are_answered_with_the_whole_file(client):
    answer = client.get(FILE_URL, headers={"range": "bytes=0-1,5-6"})

    assert (answer.status_code, answer.content) == (200, CONTENT)


def test_a_range_behind_the_end_is_416_with_the_size(client):
    answer = client.get(FILE_URL, headers={"range": f"bytes={len(CONTENT)}-"})

    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"
    assert answer.json()["code"] == "range_not_satisfiable"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, len(CONTENT) - 1), max_size=4))
def test_ranges_downloaded_one_by_one_put_together_are_the_file(client, cuts):
    edges = sorted({0, len(CONTENT), *cuts})
    parts = [
        client.get(FILE_URL, headers={"range": f"bytes={low}-{high - 1}"}).content for low, high in pairwise(edges)
    ]

    assert b"".join(parts) == CONTENT


def test_if_range_resumes_only_the_same_file(client):
    etag = client.head(FILE_URL).headers["etag"]
    for if_range, status in [(etag, 206), ('"stale"', 200), (f"W/{etag}", 200), ("Wed, 02 Jan 2030 03:04:05 GMT", 200)]:
        answer = client.get(FILE_URL, headers={"range": "bytes=0-0", "if-range": if_range})
        assert answer.status_code == status, if_range


def test_a_known_file_is_not_sent_again(client):
    etag = client.head(FILE_URL).headers["etag"]
    for known, status in [(etag, 304), (f"W/{etag}", 304), ("*", 304), (f'"x", {etag}', 304), ('"x"', 200)]:
        answer = client.get(FILE_URL, headers={"if-none-match": known})
        assert answer.status_code == status, known
        assert answer.headers["etag"] == etag


def test_an_empty_file_is_a_file(client, rooms):
    rooms.objects["k/empty.csv"] = b""
    rooms.put(finished_view(package_file("empty.csv", b"")))
    url = f"/v1/exports/{EXPORT_ID}/files/empty.csv"

    assert client.get(url).content == b""
    assert client.get(url, headers={"range": "bytes=0-"}).status_code == 416


def test_every_download_is_recorded_with_what_was_sent(client, anonymous, rooms, link):
    client.get(FILE_URL, headers={"range": "bytes=10-19"})
    anonymous.get(link)
    client.head(FILE_URL)

    by_key, by_link = rooms.downloads
    assert (by_key.tenant_id, by_key.file, by_key.first_byte, by_key.bytes_sent) == (ACME, "orders.csv", 10, 10)
    assert by_key.by.startswith("key:")
    assert (by_link.by, by_link.bytes_sent, by_link.complete) == ("link", len(CONTENT), True)


def test_a_changed_link_is_403_and_an_expired_one_410(anonymous, link, rooms):
    assert anonymous.get(link.replace("orders.csv", "manifest.json")).status_code == 403
    assert anonymous.get(link + "&tenant=acme").status_code == 403
    assert anonymous.get(link[:-1]).status_code == 403
    assert anonymous.get(link.replace("expires=", "expires=9")).status_code == 403
    rooms.now = NOW.replace(hour=5)
    answer = anonymous.get(link)

    assert (answer.status_code, answer.json()["code"]) == (410, "gone")
    assert anonymous.get(link[:-1]).status_code == 403


def test_a_link_opens_only_by_reading(anonymous, link):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = anonymous.request(method, link)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_link_to_a_deleted_export_is_410(anonymous, link, rooms):
    rooms.views.clear()

    assert anonymous.get(link).status_code == 410


def test_an_expired_package_is_410_for_key_and_link(client, anonymous, link, rooms):
    rooms.put(finished_view(status=ExportStatus.EXPIRED))

    assert client.get(FILE_URL).status_code == 410
    assert anonymous.get(link).status_code == 410


@pytest.mark.parametrize("name", ["other.csv", "..%2Forders.csv", "%2e%2e", "orders.csv%00", "k%2Forders.csv"])
def test_other_names_are_404(client, name):
    assert client.get(f"/v1/exports/{EXPORT_ID}/files/{name}").status_code == 404


def test_an_object_that_cannot_be_read_is_an_ordinary_error_answer(client, rooms):
    del rooms.objects["k/orders.csv"]
    answer = client.get(FILE_URL)

    assert answer.status_code == 500
    assert "orders" not in answer.text
    rooms.objects["k/orders.csv"] = b""
    assert client.get(FILE_URL).json()["code"] == "package_mismatch"


@pytest.mark.parametrize("stored", [CONTENT[:5000], CONTENT + b"x"])
def test_an_object_of_another_size_never_looks_like_a_finished_download(client, rooms, stored):
    rooms.reader = lambda key, start, length: iter([stored[:3000], stored[3000:]])
    # Raised through to the server, which then breaks the connection off.
    with pytest.raises(RuntimeError) as caught:
        client.get(FILE_URL)

    assert isinstance(caught.value.__cause__, PackageMismatchError)
    assert not rooms.downloads[-1].complete


def test_a_caller_who_goes_away_stops_the_reading(app, client, rooms):
    """A hand-made ASGI conversation: after the second block the caller disconnects, while sending blocks for ever."""
    rooms.block_bytes = 100
    closed, sent = [], []

    def endless(key, start, length):
        try:
            while True:
                yield b"x" * 100
        finally:
            closed.append(True)

    async def converse():
        gone = asyncio.Event()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if len(sent) == 3:
                gone.set()
                await asyncio.Event().wait()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "path": FILE_URL,
            "raw_path": FILE_URL.encode(),
            "query_string": b"",
            "headers": [(b"authorization", client.headers["authorization"].encode())],
            "server": ("x", 1),
            "client": ("y", 2),
            "scheme": "http",
        }
        await asyncio.wait_for(app(scope, receive, send), 10)

    rooms.reader = endless
    asyncio.run(converse())

    assert closed == [True]
    assert rooms.downloads[-1].bytes_sent == 100
    assert not rooms.downloads[-1].complete


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "attachment; filename=\"a.csv\"; filename*=UTF-8''a.csv"),
        ('a"b\\c.csv', "attachment; filename=\"a_b_c.csv\"; filename*=UTF-8''a_b_c.csv"),
        ("../../etc", "attachment; filename=\"_.._etc\"; filename*=UTF-8''_.._etc"),
        ("a\r\nX: y", "attachment; filename=\"a__X: y\"; filename*=UTF-8''a__X%3A%20y"),
        ("größe.csv", "attachment; filename=\"gr__e.csv\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.csv"),
        ("", "attachment; filename=\"file\"; filename*=UTF-8''file"),
    ],
)
def test_a_file_name_is_safe_in_the_header(name, expected):
    assert content_disposition(name) == expected
