"""The rows of `reliability.md` section 4 that concern this surface; each test names its rows."""

import json

import pytest
from api_fakes import ACME, EXPORT_ID, FOREIGN_ID, OTHER
from starlette.testclient import TestClient

from tenure.core import limits
from tenure.core.keys import KEY_RANDOM_BYTES, Scope, make_key

EXPORT_URL = f"/v1/exports/{EXPORT_ID}"
JSON = {"content-type": "application/json"}


def send(client, body, **headers):
    return client.post("/v1/exports", content=body, headers={**JSON, **headers})


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Basic dXNlcjpwYXNz",
        b"Bearer",
        b"Bearer x",
        b"Bearer " + make_key(bytes(KEY_RANDOM_BYTES)).text.encode(),
        b"Bearer tnr_live_\x00",
        "Bearer tnr_live_ä".encode(),
        b"Bearer " + b"a" * 1_000_000,
    ],
)
@pytest.mark.parametrize("url", ["/v1/exports", EXPORT_URL, "/v1/datasets", f"{EXPORT_URL}/files/orders.csv"])
def test_rows_1_2_without_a_valid_key_every_answer_is_the_same_401(anonymous, url, header):
    answer = anonymous.get(url, headers={"authorization": header} if header is not None else {})

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.content == anonymous.get(url).content


def test_row_2_the_right_id_with_a_wrong_secret_is_401(client, anonymous):
    good = client.headers["authorization"]
    wrong = good[:-1] + ("a" if good[-1] != "a" else "b")

    assert anonymous.get("/v1/exports", headers={"authorization": wrong}).status_code == 401
    assert anonymous.get("/v1/exports", headers=[("authorization", good), ("authorization", good)]).status_code == 401


@pytest.mark.parametrize(
    ("method", "url", "scope"),
    [
        ("GET", "/v1/exports", "exports:read"),
        ("GET", EXPORT_URL, "exports:read"),
        ("GET", "/v1/datasets", "exports:read"),
        ("GET", f"{EXPORT_URL}/files/orders.csv", "exports:read"),
        ("POST", "/v1/exports", "exports:execute"),
        ("DELETE", EXPORT_URL, "exports:execute"),
        ("POST", f"{EXPORT_URL}/cancel", "exports:execute"),
    ],
)
@pytest.mark.parametrize("tenant", [ACME, None])
def test_row_3_a_missing_scope_is_403_and_named(app, rooms, method, url, scope, tenant):
    """An operator's key, which has no tenant, holds no tenant's scope."""
    scopes = {Scope.OPERATOR, *Scope} if tenant is None else set(Scope) - {Scope(scope)}
    key = rooms.make_key(tenant, *scopes)
    answer = TestClient(app).request(method, url, headers={"authorization": f"Bearer {key}", **JSON})

    assert answer.status_code == 403
    assert scope in answer.json()["detail"]
    assert f'scope="{scope}"' in answer.headers["www-authenticate"]


def test_rows_4_57_a_link_of_one_tenant_works_with_anybody_elses_key_only_as_a_link(app, client, rooms):
    link = client.get(EXPORT_URL).json()["download_url"]
    key = rooms.make_key(OTHER, *Scope, seed=2)
    other = TestClient(app, headers={"authorization": f"Bearer {key}"})

    assert other.get(link).status_code == 200
    assert other.get(EXPORT_URL).status_code == 404
    assert other.get(f"/v1/exports/{FOREIGN_ID}").status_code == 200


def test_row_5_a_tenant_given_beside_the_key_is_never_honoured(client, rooms):
    assert send(client, b'{"tenant_id":"other"}').status_code == 422
    assert client.get("/v1/exports?tenant_id=other").status_code == 422
    assert client.get(EXPORT_URL + "?tenant_id=other").status_code == 422
    assert client.get("/v1/exports", headers={"x-tenant-id": "other"}).json()["items"][0]["job_id"] == str(EXPORT_ID)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{}x",
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b'{"format":"\\ud800"}',
        b'{"link_seconds":NaN}',
        b'{"link_seconds":Infinity}',
        b'{"link_seconds":1e999}',
        b'{"link_seconds":' + b"1" * 4301 + b"}",
        b'{"format":"csv","format":"csv"}',
        b"[" * 30_000,
    ],
)
def test_rows_7_9_what_is_no_strict_json_is_400(client, body):
    answer = send(client, body)

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_request")


def test_row_11_a_body_over_the_limit_is_413_and_the_connection_closes(client):
    too_much = b" " * (limits.REQUEST_BYTES_MAX + 1)

    def pieces():
        yield too_much[:1000]
        yield too_much[1000:]

    for body in (too_much, pieces()):
        answer = send(client, body)
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    for length in ("1" * 30, "9" * 5000):
        assert send(client, b"{}", **{"content-length": length}).status_code == 413
    assert send(client, b"{}", **{"content-length": "-1"}).status_code == 400
    assert send(client, b"{}" + b" " * (limits.REQUEST_BYTES_MAX - 2)).status_code == 202


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "application/jsonx",
        "a" * 5000,
    ],
)
def test_row_13_another_content_type_is_415(client, content_type):
    headers = {} if content_type is None else {"content-type": content_type}

    assert client.post("/v1/exports", content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; Charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_row_13_json_may_be_written_in_any_way(client, content_type):
    assert client.post("/v1/exports", content=b"{}", headers={"content-type": content_type}).status_code == 202


def test_row_13_a_compressed_body_is_415(client):
    assert send(client, b"{}", **{"content-encoding": "gzip"}).status_code == 415


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/html", 406),
        ("application/xml, text/*", 406),
        ("application/json;q=0", 406),
        ("application/json;q=0.0, text/html", 406),
        ("*/*", 200),
        ("text/html, application/json;q=0.1", 200),
        ("application/problem+json", 200),
        ("", 200),
    ],
)
def test_row_14_an_accept_that_rules_json_out_is_406(client, accept, status):
    assert client.get(EXPORT_URL, headers={"accept": accept}).status_code == status


@pytest.mark.parametrize(
    ("request_body", "pointer"),
    [
        ({"x": 1}, "/x"),
        ({"format": 1}, "/format"),
        ({"format": None}, "/format"),
        ({"filters": {"id": {"null": "true"}}}, "/filters/id"),
        ({"link_seconds": -1}, "/link_seconds"),
        ({"link_seconds": 2**31}, "/link_seconds"),
        ({"link_seconds": 2**63}, "/link_seconds"),
        ({"link_seconds": 60.0}, "/link_seconds"),
        ({"filters": {"id": 2**63}}, "/filters/id"),
        ({"dataset": "pg_catalog.pg_class"}, "/dataset"),
        ({"dataset": "orders", "columns": ["ctid"]}, "/columns"),
        ({"dataset": "orders", "columns": ["secret_tenant"]}, "/columns"),
        ({"filters": {"$where": 1}}, "/filters/$where"),
        ({"filters": {"id": {"raw": "1=1"}}}, "/filters/id/raw"),
        ({"filters": {"id": {"eq": ["a"]}}}, "/filters/id/eq"),
        ({"filters": {"id": "a\0"}}, "/filters/id"),
    ],
)
def test_rows_15_17_40_43_44_a_wrong_value_is_422_with_its_pointer(client, request_body, pointer):
    answer = send(client, json.dumps(request_body).encode())

    assert answer.status_code == 422
    assert any(problem["pointer"].startswith(pointer) for problem in answer.json()["problems"])


@pytest.mark.parametrize("value", ["' OR 1=1 --", "%", "_", "\\", "$1", "{}", "%s"])
def test_row_44_values_reach_the_order_literally(client, rooms, value):
    assert send(client, json.dumps({"filters": {"id": value}}).encode()).status_code == 202
    assert rooms.admitted[0][2].selections[0].filters[0].values == (value,)


@pytest.mark.parametrize(
    ("method", "url", "allow"),
    [
        ("PUT", "/v1/exports", "GET, HEAD, OPTIONS, POST"),
        ("PATCH", EXPORT_URL, "DELETE, GET, HEAD, OPTIONS"),
        ("GET", f"{EXPORT_URL}/cancel", "OPTIONS, POST"),
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
        ("BREW", "/v1/exports", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_row_27_a_wrong_method_is_405_with_all_the_right_ones(client, method, url, allow):
    answer = client.request(method, url)

    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json()["code"] == "method_not_allowed"
    options = client.options(url)
    assert (options.status_code, options.headers["allow"], options.content) == (204, allow, b"")


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e9", "limit"),
        ("limit=abc", "limit"),
        ("limit=", "limit"),
        ("limit=201", "limit"),
        ("limit=٣", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("limit=1&limit=2", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=", "cursor"),
        ("cursor=ä", "cursor"),
        ("cursor=" + "a" * 5000, "cursor"),
        ("limt=5", "limt"),
    ],
)
def test_row_29_wrong_and_repeated_parameters_are_422(client, query, pointer):
    answer = client.get(f"/v1/exports?{query}")

    assert answer.status_code == 422
    assert answer.json()["problems"][0]["pointer"] == pointer


@pytest.mark.parametrize("expires", ["99999999999", "-5", "1e9", "١٢"])
def test_rows_55_56_an_expiry_that_was_changed_is_403(client, anonymous, expires):
    link = client.get(EXPORT_URL).json()["download_url"]
    changed = "&".join(f"expires={expires}" if part.startswith("expires=") else part for part in link.split("&"))

    assert anonymous.get(changed).status_code == 403


def test_row_60_a_file_cannot_become_a_page(client):
    headers = client.get(f"{EXPORT_URL}/files/orders.csv").headers

    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
