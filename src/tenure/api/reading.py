"""Reads the parts of a request that every address treats alike: key, body, query, Accept, preconditions."""

import base64
import binascii
from collections.abc import Collection, Mapping
from uuid import UUID

from starlette.datastructures import Headers
from starlette.requests import Request

from tenure.api.problems import BodyTooLargeError, NotAcceptableError, SurfaceError, UnsupportedMediaTypeError
from tenure.api.services import Services
from tenure.core import limits
from tenure.core.errors import FieldProblem, InvalidRequestError, NotAuthenticatedError, NotFoundError
from tenure.core.fields import shown, suggestion
from tenure.core.ids import JobId
from tenure.core.keys import Principal, read_authorization

LIST_COUNT_DEFAULT = 50
JSON_MEDIA_TYPES = ("application/json", "application/problem+json", "application/*", "*/*")
UUID_BYTES = 16


async def read_principal(request: Request, services: Services) -> Principal:
    """Who is asking. Raises NotAuthenticatedError; two Authorization headers are as good as none."""
    headers = request.headers.getlist("authorization")
    presented = read_authorization(headers[0]) if len(headers) == 1 else None
    if presented is None:
        raise NotAuthenticatedError
    return await services.authenticate(presented)


async def read_body(request: Request) -> bytes:
    """The JSON body, at most `REQUEST_BYTES_MAX`. Raises UnsupportedMediaTypeError, BodyTooLargeError."""
    content_type = request.headers.get("content-type", "")
    media_type, _, parameters = content_type.lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    if media_type.strip() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise UnsupportedMediaTypeError(f"the body must be application/json, not {shown(content_type)}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError("the body must not be compressed")
    declared = request.headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit():
        raise SurfaceError("Content-Length must be a whole number")
    # Compared as text first: int() refuses thousands of digits with an exception of its own.
    if len(declared) > 18 or int(declared) > limits.REQUEST_BYTES_MAX:  # noqa: PLR2004  18 digits always fit
        raise _too_large()
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limits.REQUEST_BYTES_MAX:
            raise _too_large()
    return bytes(body)


def _too_large() -> BodyTooLargeError:
    # Closing is the only way to be rid of the rest of the body without reading it.
    return BodyTooLargeError(
        f"a request may have {limits.REQUEST_BYTES_MAX} bytes at most", headers={"Connection": "close"}
    )


def require_json_accepted(headers: Headers) -> None:
    """Raises NotAcceptableError when the Accept header rules JSON out."""
    accepts = headers.get("accept")
    if accepts and not accepts_any(accepts, JSON_MEDIA_TYPES):
        raise NotAcceptableError("this address answers with application/json only")


def accepts_any(header: str, media_types: Collection[str]) -> bool:
    """Whether one of the media types is listed with a quality above zero."""
    for item in header.lower().split(","):
        media_type, *parameters = (part.strip() for part in item.split(";"))
        refused = any(part.replace(" ", "").rstrip("0.") == "q=" for part in parameters if part.startswith("q"))
        if media_type in media_types and not refused:
            return True
    return False


def read_query(request: Request, allowed: Collection[str] = ()) -> dict[str, str]:
    """The query parameters, each at most once. Raises InvalidRequestError naming unknown and repeated ones."""
    pairs = request.query_params.multi_items()
    names = [name for name, _ in pairs]
    problems = [
        FieldProblem(pointer=name, detail=f"is not a parameter of this address.{suggestion(name, allowed)}")
        for name in dict.fromkeys(names)
        if name not in allowed
    ]
    problems += [
        FieldProblem(pointer=name, detail="is given more than once") for name in allowed if names.count(name) > 1
    ]
    if problems:
        raise InvalidRequestError(*problems)
    return dict(pairs)


def read_page(request: Request) -> tuple[int, JobId | None]:
    """`limit` and `cursor` of a list. Raises InvalidRequestError."""
    query = read_query(request, ("limit", "cursor"))
    limit, problems = read_limit(query)
    before = _read_cursor(query["cursor"]) if "cursor" in query else None
    if "cursor" in query and before is None:
        problems.append(FieldProblem(pointer="cursor", detail="must be the next_cursor of an earlier answer"))
    if problems:
        raise InvalidRequestError(*problems)
    return limit, before


def read_limit(query: Mapping[str, str]) -> tuple[int, list[FieldProblem]]:
    """`limit` of a list, and what is wrong with it."""
    text = query.get("limit", str(LIST_COUNT_DEFAULT))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0  # noqa: PLR2004
    if 1 <= limit <= limits.LIST_COUNT_MAX:
        return limit, []
    return limit, [FieldProblem(pointer="limit", detail=f"must be a whole number from 1 to {limits.LIST_COUNT_MAX}")]


def write_cursor(last: JobId) -> str:
    """Opaque to callers. It only says where to go on; whose exports are listed comes from the key alone."""
    return base64.urlsafe_b64encode(last.bytes).decode("ascii").rstrip("=")


def _read_cursor(text: str) -> JobId | None:
    try:
        raw = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    return JobId(UUID(bytes=raw)) if len(raw) == UUID_BYTES else None


def read_export_id(request: Request) -> JobId:
    return read_id(request, "export")


def read_id(request: Request, noun: str) -> JobId:
    """`<noun>_id` in the path. A malformed one is answered like an unknown one."""
    text: str = request.path_params[f"{noun}_id"]
    try:
        found = UUID(text)
    except ValueError:
        raise NotFoundError(noun) from None
    if str(found) != text:
        raise NotFoundError(noun)
    return JobId(found)


def is_unchanged(headers: Headers, etag: str) -> bool:
    """Whether If-None-Match already names this ETag, by weak comparison as RFC 9110 wants for it."""
    known = ",".join(headers.getlist("if-none-match"))
    return known.strip() == "*" or etag in {item.strip().removeprefix("W/") for item in known.split(",")}
