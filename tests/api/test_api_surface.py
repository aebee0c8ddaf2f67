"""What holds for every address: problems, pages, headers, description."""

import json
import re

import pytest
from api_fakes import EXPORT_ID

from tenure.api.operations import OPERATIONS
from tenure.api.problems import STATUS_BY_CODE, error_classes
from tenure.core import errors
from tenure.core.errors import TenureError

EXPORT_URL = f"/v1/exports/{EXPORT_ID}"


def test_every_error_of_the_core_has_a_status():
    core = {item.code for item in vars(errors).values() if isinstance(item, type) and issubclass(item, TenureError)}

    assert core <= set(STATUS_BY_CODE)
    assert [item.code for item in error_classes()] == list(STATUS_BY_CODE)


def test_every_problem_leads_to_its_explanation(client):
    for item in error_classes():
        document = client.get(f"/errors/{item.code}").json()
        assert (document["code"], document["status"]) == (item.code, STATUS_BY_CODE[item.code])
        assert document["what_to_do"]
    assert len(client.get("/errors").json()["errors"]) == len(STATUS_BY_CODE)
    assert client.get("/errors/nonsense").status_code == 404


def test_a_problem_has_the_members_of_rfc_9457_and_ours(client):
    answer = client.get("/v1/exports?x=1")
    problem = answer.json()

    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["type"] == "/errors/invalid_request"
    assert (problem["title"], problem["status"]) == ("Invalid request", 422)
    assert problem["detail"] == "1 wrong field"
    assert (problem["code"], problem["retryable"]) == ("invalid_request", False)
    assert problem["what_to_do"]
    assert problem["problems"][0]["pointer"] == "x"


@pytest.mark.parametrize("url", ["/nothing", "/v1", "/v1/exports/", "/v1/exports/x/y", "/%00", "/docs", "/redoc"])
def test_an_unknown_address_is_a_404_problem(client, url):
    answer = client.get(url)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_unexpected_error_is_logged_and_tells_the_caller_nothing(client, rooms, caplog):
    rooms.fault = ZeroDivisionError("the secret inside")
    answer = client.get(EXPORT_URL)

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.json()["instance"] in caplog.text
    assert "the secret inside" in caplog.text


def test_every_answer_has_safe_headers(client, rooms):
    urls = ["/", "/console", "/healthz", "/readyz", "/openapi.json", "/errors", "/nothing", EXPORT_URL, "/v1/exports?x"]
    rooms.fault = None
    for url in urls:
        headers = client.get(url).headers
        assert headers["x-content-type-options"] == "nosniff", url
        assert headers["referrer-policy"] == "no-referrer", url
        assert headers["cache-control"] == "private, no-store", url
        assert "default-src 'none'" in headers["content-security-policy"], url


def test_health_is_about_the_process_and_readiness_about_what_it_needs(anonymous, rooms):
    assert anonymous.get("/healthz").json() == {"status": "ok"}
    assert anonymous.get("/readyz").json() == {"status": "ok", "checks": {"database": True}}
    rooms.checks = {"database": False, "schema": True}
    answer = anonymous.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.headers["retry-after"] == "5"
    assert anonymous.get("/healthz").status_code == 200


@pytest.mark.parametrize("url", ["/", "/console", "/errors", "/errors/gone"])
def test_pages_are_whole_html_without_anything_from_elsewhere(anonymous, url):
    answer = anonymous.get(url, headers={"accept": "text/html"})

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.startswith("<!doctype html>")
    assert "<h1>" in answer.text
    assert not re.findall(r"(?:src|href)=[\"'](?!/)", answer.text)
    assert "<script" not in answer.text


def test_the_description_is_openapi_3_1_and_covers_every_route(anonymous, app):
    document = anonymous.get("/openapi.json").json()
    described = {(path, method) for path, item in document["paths"].items() for method in item}

    assert document["openapi"] == "3.1.0"
    assert described == {(operation.path, operation.method.lower()) for operation in OPERATIONS}
    assert described == {
        (route.path, method.lower()) for route in app.routes for method in route.methods if method != "HEAD"
    }
    assert json.loads(json.dumps(app.openapi())) == document


def test_every_reference_in_the_description_leads_somewhere(anonymous):
    text = anonymous.get("/openapi.json").text
    schemas = json.loads(text)["components"]["schemas"]

    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(schemas)


def test_the_described_request_has_the_fields_that_are_read(anonymous, client):
    properties = anonymous.get("/openapi.json").json()["components"]["schemas"]["ExportRequest"]["properties"]
    problem = client.post("/v1/exports", json={"zzzzzz": 1}).json()["problems"][0]["detail"]

    assert set(properties) == set(re.search(r"Allowed: (.*)\.", problem)[1].split(", "))
