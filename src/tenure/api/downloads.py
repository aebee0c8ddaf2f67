"""Downloads: by key under the export, or by signed link for people without one. Ranges, validators, back-pressure."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from anyio import CancelScope, create_task_group, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenure.api.ranges import Span, read_range
from tenure.api.reading import is_unchanged, read_export_id, read_principal
from tenure.api.services import Services
from tenure.core.errors import GoneError, NotFoundError, PackageMismatchError
from tenure.core.export import ExportView
from tenure.core.keys import Scope as KeyScope
from tenure.exports.download import DownloadFile, DownloadRecord, LinkRefusedError, check_link, find_file

DOWNLOAD_HEADERS = {
    "Accept-Ranges": "bytes",
    # A file is data, whatever is in it: never rendered, never run, never kept by a cache that others share.
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class DownloadRoutes:
    """Handlers for files."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def with_key(self, request: Request) -> Response:
        principal = await read_principal(request, self._services)
        tenant_id = principal.tenant_for(KeyScope.EXPORTS_READ)
        view = await self._services.find_export(tenant_id, read_export_id(request))
        return await self._serve(request, view, by=f"key:{principal.key_id}")

    async def with_link(self, request: Request) -> Response:
        """The signature is checked before anything is looked up: a guesser learns nothing and costs nothing."""
        pairs = request.query_params.multi_items()
        query = dict(pairs)
        if len(query) != len(pairs):
            raise LinkRefusedError("this link is not valid")
        grant = check_link(
            self._services.link_keys,
            export_id=request.path_params["export_id"],
            file=request.path_params["file"],
            query=query,
            now=self._services.now(),
        )
        try:
            view = await self._services.find_export(grant.tenant_id, grant.export_id)
        except NotFoundError:
            raise GoneError("this export no longer exists") from None
        return await self._serve(request, view, by="link")

    async def _serve(self, request: Request, view: ExportView, *, by: str) -> Response:
        file = find_file(view, request.path_params["file"], now=self._services.now())
        headers = _file_headers(file)
        if is_unchanged(request.headers, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        span = _read_span(request, file, headers["ETag"])
        headers["Content-Length"] = str(span.length)
        if not span.whole:
            headers["Content-Range"] = span.content_range()
        if request.method == "HEAD":
            return Response(headers=headers, media_type=file.media_type)
        record = DownloadRecord(
            tenant_id=view.tenant_id,
            export_id=view.id,
            file=file.name,
            by=by,
            first_byte=span.start,
            bytes_asked=span.length,
            bytes_sent=0,
        )
        blocks = await _Blocks.open(self._services, file.key, span)
        return _DownloadResponse(blocks, record, self._services, headers=headers, media_type=file.media_type)


def content_disposition(name: str) -> str:
    """`attachment` with the name in ASCII (RFC 6266) and in full (RFC 8187); separators and controls become `_`."""
    safe = "".join("_" if char in '/\\"%' or not char.isprintable() else char for char in name).lstrip(".") or "file"
    plain = safe.encode("ascii", "replace").decode("ascii").replace("?", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(safe, safe='')}"


def _file_headers(file: DownloadFile) -> dict[str, str]:
    digest = base64.b64encode(bytes.fromhex(file.sha256)).decode("ascii")
    return {
        **DOWNLOAD_HEADERS,
        "Content-Disposition": content_disposition(file.name),
        "ETag": f'"{file.sha256}"',
        "Repr-Digest": f"sha-256=:{digest}:",
    }


def _read_span(request: Request, file: DownloadFile, etag: str) -> Span:
    """The part asked for. RFC 9110 defines Range for GET only; a stale If-Range asks for the whole file."""
    if_range = request.headers.get("if-range")
    honoured = request.method == "GET" and if_range in {None, etag}
    return read_range(request.headers.get("range") if honoured else None, file.bytes)


class _Blocks:
    """The object's blocks, read in a thread one at a time, so that nothing is read before the last one was sent."""

    def __init__(self, blocks: Iterator[bytes], first: bytes) -> None:
        self._blocks = blocks
        self._first: bytes | None = first

    @classmethod
    async def open(cls, services: Services, key: str, span: Span) -> "_Blocks":
        """Open and read one block, so that a missing object is still an ordinary error answer."""
        if span.length == 0:
            return cls(iter(()), b"")
        blocks = await to_thread.run_sync(services.read_object, key, span.start, span.length)
        first = await to_thread.run_sync(next, blocks, b"")
        if not first:
            raise PackageMismatchError(f"the stored object {key} ends too early", phase="download")
        return cls(blocks, first)

    async def next(self) -> bytes:
        """Empty at the end."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await to_thread.run_sync(next, self._blocks, b"")

    async def close(self) -> None:
        close = getattr(self._blocks, "close", None)
        if close is not None:
            await to_thread.run_sync(close)


class _DownloadResponse(Response):
    """Streams blocks, stops when the caller goes away, and records what was sent."""

    def __init__(
        self,
        blocks: _Blocks,
        record: DownloadRecord,
        services: Services,
        *,
        headers: dict[str, str],
        media_type: str,
    ) -> None:
        # The base class builds the header list; the body is not its concern.
        super().__init__(None, 206 if "Content-Range" in headers else 200, headers, media_type)
        self._blocks = blocks
        self._record = record
        self._record_download = services.record_download
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI's signature
        failure: Exception | None = None
        async with create_task_group() as group:
            # uvicorn's send() stays silent after a disconnect: without the watcher we would read on for nobody.
            group.start_soon(_cancel_on_disconnect, receive, group.cancel_scope)
            try:
                await self._send_all(send)
            except Exception as error:  # noqa: BLE001  raised below, outside the group that would wrap it
                failure = error
            finally:
                with CancelScope(shield=True):
                    await self._finish()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        asked = self._record.bytes_asked
        while self._sent < asked:
            block = await self._blocks.next()
            if not block or len(block) > asked - self._sent:
                # Ending here breaks the connection before Content-Length is reached: the caller sees a failed download.
                raise PackageMismatchError(
                    "the stored object has another size than its manifest says", phase="download"
                )
            await send({"type": "http.response.body", "body": block, "more_body": True})
            self._sent += len(block)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _finish(self) -> None:
        await self._blocks.close()
        await self._record_download(replace(self._record, bytes_sent=self._sent))


async def _cancel_on_disconnect(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
