"""Asks for an export and looks at it over HTTP, as any customer's program would."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

import httpx2
import msgspec

from tenure.api.documents import ExportDocument
from tenure.cli.demo.running import DemoError
from tenure.core.ids import JobId

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The answer to a request for an export."""

    status: HTTPStatus
    location: str
    export: ExportDocument


class TenantClient:
    """Speaks with the API under one tenant's key."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def ask(self, request: Mapping[str, object]) -> Asked:
        """Ask for an export. The identical one that is under way already counts as well."""
        response = self._send("POST", "/v1/exports", json.dumps(request).encode())
        return Asked(
            status=HTTPStatus(response.status_code),
            location=response.headers.get("location", ""),
            export=_export(response),
        )

    def show(self, export_id: JobId) -> ExportDocument:
        return _export(self._send("GET", f"/v1/exports/{export_id}"))

    def _send(self, method: str, path: str, body: bytes | None = None) -> httpx2.Response:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            response = self._client.request(method, path, content=body, headers=headers)
        except httpx2.HTTPError as error:
            raise DemoError(f"{method} {path} got no answer: {error}") from error
        if not response.is_success:
            raise DemoError(f"{method} {path} was answered {response.status_code}: {_problem(response)}")
        return response


@contextmanager
def tenant_client(api_url: str, key: str) -> Iterator[TenantClient]:
    # Nothing of the environment: a proxy meant for the internet must not stand before a loopback address.
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=api_url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False) as client:
        yield TenantClient(client)


def _export(response: httpx2.Response) -> ExportDocument:
    try:
        return msgspec.json.decode(response.content, type=ExportDocument)
    except msgspec.DecodeError as error:
        raise DemoError(f"the API's answer is not an export: {error}") from error


def _problem(response: httpx2.Response) -> str:
    """What a problem document says (RFC 9457), or the status in words."""
    try:
        problem = response.json()
    except ValueError:
        return response.reason_phrase
    if not isinstance(problem, dict):
        return response.reason_phrase
    fields = "; ".join(f"{item.get('pointer')} {item.get('detail')}" for item in problem.get("problems", ()))
    return ": ".join(part for part in (str(problem.get("detail", "")), fields) if part)
