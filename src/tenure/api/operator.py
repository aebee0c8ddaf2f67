"""`/v1/queues`, `/v1/fairness` and `/v1/jobs/{id}/why`: see why work waits, and change whose turn it is."""

import base64
import binascii
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tenure.api.answers import json_answer
from tenure.api.operator_documents import (
    LaneList,
    QueueList,
    fairness_document,
    lane_document,
    lane_settings_document,
    queue_document,
    queue_settings_document,
    why_document,
)
from tenure.api.reading import read_body, read_id, read_limit, read_principal, read_query, require_json_accepted
from tenure.api.services import Services
from tenure.core import limits
from tenure.core.durations import read_duration
from tenure.core.errors import FieldProblem, ForbiddenError, InvalidRequestError, NotFoundError
from tenure.core.fields import Problems, Table, json_pointer
from tenure.core.ids import TenantId
from tenure.core.keys import Principal, Scope
from tenure.core.strict_json import UnreadableJsonError, decode_strict
from tenure.core.tuning import UNLIMITED, LaneChanges, QueueChanges, is_name
from tenure.exports.request import MalformedRequestError

SINCE_DEFAULT = "1h"
LIMITS = frozenset({"cap", "ceiling", "slots"})
"""Fields that null lifts."""


class OperatorRoutes:
    """Handlers. All but `why` are for operators' keys only; `why` answers a tenant about its own jobs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def queues(self, request: Request) -> Response:
        await self._operator(request)
        read_query(request)
        views = await self._services.operator.list_queues()
        return json_answer(QueueList(items=tuple(map(queue_document, views))))

    async def tune_queue(self, request: Request) -> Response:
        principal = await self._operator(request)
        read_query(request)
        queue = _read_name(request, "queue", limits.QUEUE_NAME_CHARS_MAX)
        changes = QueueChanges(**_read_changes(await read_body(request), ("slots", "headroom", "paused")))
        changes.require_valid()
        settings = await self._services.operator.tune_queue(principal.key_id, queue, changes)
        return json_answer(queue_settings_document(settings))

    async def lanes(self, request: Request) -> Response:
        await self._operator(request)
        query = read_query(request, ("limit", "cursor"))
        queue = _read_name(request, "queue", limits.QUEUE_NAME_CHARS_MAX)
        limit, problems = read_limit(query)
        after = _read_cursor(query["cursor"]) if "cursor" in query else None
        if "cursor" in query and after is None:
            problems.append(FieldProblem(pointer="cursor", detail="must be the next_cursor of an earlier answer"))
        if problems:
            raise InvalidRequestError(*problems)
        # One more than asked for tells whether there is a next page.
        views = await self._services.operator.list_lanes(queue, limit + 1, after)
        shown = views[:limit]
        cursor = _write_cursor(shown[-1].settings.tenant_id) if len(views) > limit else None
        return json_answer(LaneList(items=tuple(map(lane_document, shown)), next_cursor=cursor))

    async def tune_lane(self, request: Request) -> Response:
        principal = await self._operator(request)
        read_query(request)
        queue = _read_name(request, "queue", limits.QUEUE_NAME_CHARS_MAX)
        tenant_id = TenantId(_read_name(request, "tenant", limits.TENANT_ID_CHARS_MAX))
        changes = LaneChanges(**_read_changes(await read_body(request), ("weight", "cap", "ceiling", "paused")))
        changes.require_valid()
        settings = await self._services.operator.tune_lane(principal.key_id, queue, tenant_id, changes)
        return json_answer(lane_settings_document(settings))

    async def why(self, request: Request) -> Response:
        principal = await read_principal(request, self._services)
        is_operator = _is_operator(principal)
        tenant_id = None if is_operator else principal.tenant_for(Scope.EXPORTS_READ)
        require_json_accepted(request.headers)
        read_query(request)
        why = await self._services.operator.why_job(tenant_id, read_id(request, "job"))
        return json_answer(why_document(why, for_operator=is_operator))

    async def fairness(self, request: Request) -> Response:
        await self._operator(request)
        query = read_query(request, ("since", "queue"))
        seconds = read_duration(query.get("since", SINCE_DEFAULT))
        if seconds is None:
            raise InvalidRequestError(FieldProblem(pointer="since", detail="must be a duration such as 30m, 1h or 7d"))
        report = await self._services.operator.fairness(query.get("queue"), seconds)
        return json_answer(fairness_document(report))

    async def _operator(self, request: Request) -> Principal:
        principal = await read_principal(request, self._services)
        if not _is_operator(principal):
            raise ForbiddenError(Scope.OPERATOR)
        require_json_accepted(request.headers)
        return principal


def _is_operator(principal: Principal) -> bool:
    """A key of a tenant is never an operator's, whatever its scopes say."""
    return Scope.OPERATOR in principal.scopes and principal.tenant_id is None


def _read_name(request: Request, noun: str, chars_max: int) -> str:
    """A name in the path. One that cannot exist is answered like an unknown one."""
    text: str = request.path_params[noun]
    if not is_name(text, chars_max):
        raise NotFoundError(noun)
    return text


def _read_changes(body: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    """The named members of the object in `body`, as they came; null for a limit lifts it.

    Raises MalformedRequestError, InvalidRequestError naming unknown members. Values are checked by the changes' own
    `require_valid`.
    """
    problems = Problems(json_pointer)
    try:
        value = decode_strict(body, problems)
    except UnreadableJsonError as error:
        raise MalformedRequestError(FieldProblem(pointer="", detail=str(error))) from None
    if ambiguous := problems.found():
        raise MalformedRequestError(*ambiguous)
    table = Table(value, (), problems)
    changes: dict[str, Any] = {}
    for name in names:
        if not table.has(name):
            continue
        changes[name] = UNLIMITED if name in LIMITS and table.raw(name) is None else table.raw(name)
        if changes[name] is None:
            table.note(name, "must not be null; leave it out to keep it")
    table.refuse_unknown()
    if found := problems.found():
        raise InvalidRequestError(*found)
    return changes


def _write_cursor(last: TenantId) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode("ascii").rstrip("=")


def _read_cursor(text: str) -> TenantId | None:
    try:
        last = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None
    return TenantId(last) if is_name(last, limits.TENANT_ID_CHARS_MAX) else None
