"""Errors as problem details (RFC 9457): one table says which code is which HTTP status.

`type` is an address of this server that explains the code. What an error says about itself is sent only below 500:
above, it may name hosts, files or queries that are none of the caller's business.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from tenure.core import errors
from tenure.core.errors import (
    ExportActiveError,
    ForbiddenError,
    InvalidInputError,
    NotAuthenticatedError,
    TenureError,
)
from tenure.exports.download import LinkRefusedError
from tenure.exports.request import MalformedRequestError

PROBLEM_MEDIA_TYPE = "application/problem+json"
ACTIVE_RETRY_SECONDS = 30
UNAVAILABLE_RETRY_SECONDS = 5


class SurfaceError(TenureError):
    """A request that HTTP itself makes wrong: it never reaches a service. `headers` go with the answer."""

    code = "bad_http_request"
    title = "Bad HTTP request"
    what_to_do = "Correct the HTTP request; /openapi.json describes what is accepted."

    def __init__(self, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})


class BodyTooLargeError(SurfaceError):
    """The request's body is over the limit."""

    code = "body_too_large"
    title = "The body is too large"
    what_to_do = "Send a smaller request."


class UnsupportedMediaTypeError(SurfaceError):
    """The body is not declared as JSON."""

    code = "unsupported_media_type"
    title = "This kind of body is not accepted"
    what_to_do = "Send `Content-Type: application/json`."


class NotAcceptableError(SurfaceError):
    """The caller accepts nothing this address can answer."""

    code = "not_acceptable"
    title = "No acceptable answer"
    what_to_do = "Send `Accept: application/json`, or none."


class MethodNotAllowedError(SurfaceError):
    """The address exists, this method on it does not."""

    code = "method_not_allowed"
    title = "This method is not allowed here"
    what_to_do = "Use one of the methods in the Allow header."


class RangeNotSatisfiableError(SurfaceError):
    """The range begins behind the end of the file."""

    code = "range_not_satisfiable"
    title = "No such range"
    what_to_do = "Ask for bytes within the size in the Content-Range header."


STATUS_BY_CODE: dict[str, int] = {
    "internal": 500,
    "invalid_input": 422,
    "invalid_request": 422,
    "malformed_request": 400,
    "invalid_settings": 500,
    "format_cannot_hold": 422,
    "not_authenticated": 401,
    "forbidden": 403,
    "link_refused": 403,
    "not_found": 404,
    "gone": 410,
    "export_active": 409,
    "conflict": 409,
    "lease_lost": 409,
    "export_failed": 500,
    "row_limit_exceeded": 422,
    "query_timeout": 503,
    "source_unavailable": 503,
    "source_query_failed": 500,
    "package_mismatch": 500,
    "egress_refused": 422,
    "delivery_failed": 502,
    "endpoint_gone": 502,
    "database_unavailable": 503,
    "schema_mismatch": 503,
    "migration_failed": 503,
    "embedded_postgres": 503,
    "bad_http_request": 400,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "not_acceptable": 406,
    "method_not_allowed": 405,
    "range_not_satisfiable": 416,
}


class ProblemField(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong field: a JSON pointer into the body, or the name of a query parameter."""

    pointer: str
    detail: str


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of every answer from 400 up."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    what_to_do: str
    problems: tuple[ProblemField, ...] = ()
    links: dict[str, str] = {}
    instance: str | None = None


def problem_response(error: TenureError, *, instance: str | None = None) -> Response:
    """The answer to an error. `instance` identifies this one occurrence in the log."""
    status = status_of(error)
    document = ProblemDocument(
        type=f"/errors/{error.code}",
        title=error.title,
        status=status,
        detail=_detail(error, status),
        code=error.code,
        retryable=error.retryable,
        what_to_do=error.what_to_do,
        problems=_fields(error),
        links={"export": f"/v1/exports/{error.export_id}"} if isinstance(error, ExportActiveError) else {},
        instance=instance,
    )
    return Response(
        msgspec.json.encode(document), status, headers=_headers(error, status), media_type=PROBLEM_MEDIA_TYPE
    )


def status_of(error: TenureError) -> int:
    """The table's status; a code of a room this one does not know is the server's trouble."""
    unknown = HTTPStatus.SERVICE_UNAVAILABLE if error.retryable else HTTPStatus.INTERNAL_SERVER_ERROR
    return STATUS_BY_CODE.get(error.code, unknown)


def error_classes() -> Iterator[type[TenureError]]:
    """Every error with a documented code, in the order of the table."""
    known = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, TenureError)]
    known += [MalformedRequestError, LinkRefusedError, SurfaceError, *SurfaceError.__subclasses__()]
    by_code: dict[str, type[TenureError]] = {}
    for item in known:
        # A class that only groups others inherits its code: the first one, the parent, keeps it.
        by_code.setdefault(item.code, item)
    return (by_code[code] for code in STATUS_BY_CODE)


def _detail(error: TenureError, status: int) -> str:
    if isinstance(error, NotAuthenticatedError):
        # One text for missing, malformed, unknown, expired and revoked keys.
        return "a valid API key is needed"
    if isinstance(error, InvalidInputError):
        return f"{len(error.problems)} wrong field{'' if len(error.problems) == 1 else 's'}"
    return error.title if status >= HTTPStatus.INTERNAL_SERVER_ERROR else str(error) or error.title


def _fields(error: TenureError) -> tuple[ProblemField, ...]:
    if not isinstance(error, InvalidInputError):
        return ()
    return tuple(ProblemField(pointer=item.pointer, detail=item.detail) for item in error.problems)


def _headers(error: TenureError, status: int) -> dict[str, str]:
    match error:
        case NotAuthenticatedError():
            return {"WWW-Authenticate": 'Bearer realm="tenure"'}
        case ForbiddenError():
            return {"WWW-Authenticate": f'Bearer realm="tenure", error="insufficient_scope", scope="{error.scope}"'}
        case ExportActiveError():
            return {
                "Retry-After": str(ACTIVE_RETRY_SECONDS),
                "Link": f'</v1/exports/{error.export_id}>; rel="related"',
            }
        case SurfaceError():
            return error.headers
        case _ if status == HTTPStatus.SERVICE_UNAVAILABLE:
            return {"Retry-After": str(UNAVAILABLE_RETRY_SECONDS)}
        case _:
            return {}
