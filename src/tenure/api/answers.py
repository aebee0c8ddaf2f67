"""JSON answers, with the validators that let a caller ask again cheaply."""

import hashlib

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response

from tenure.api.reading import is_unchanged

_ENCODER = msgspec.json.Encoder()


def json_answer(document: msgspec.Struct, status: int = 200, *, headers: dict[str, str] | None = None) -> Response:
    return Response(_ENCODER.encode(document), status, headers=headers, media_type="application/json")


def validated_answer(document: msgspec.Struct, asked: Headers, *, headers: dict[str, str] | None = None) -> Response:
    """The document with a strong ETag over its bytes, or 304 when the caller has exactly these bytes."""
    body = _ENCODER.encode(document)
    every = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', **(headers or {})}
    if is_unchanged(asked, every["ETag"]):
        return Response(status_code=304, headers=every)
    return Response(body, headers=every, media_type="application/json")
