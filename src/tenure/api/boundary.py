"""The outermost layer: every answer gets safe headers, and no unexpected error gets out with its details."""

import logging
from uuid import uuid4

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenure.api.problems import problem_response
from tenure.core.errors import TenureError

SAFE_HEADERS = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_log = logging.getLogger("tenure.api")


class Boundary:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, is_head=scope["method"] == "HEAD")
        try:
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            # Nobody is left to answer, and nothing of ours went wrong.
            return
        except Exception as error:
            incident = uuid4().urn
            # The path only: the query may hold a signed link.
            _log.exception("%s %s failed, %s", scope["method"], scope["path"], incident)
            if answer.started:
                raise
            problem = error if isinstance(error, TenureError) else TenureError()
            await problem_response(problem, instance=incident)(scope, receive, answer.send)


class _Answer:
    """Passes messages on, with safe headers where the handler set none, and without a body after HEAD."""

    def __init__(self, send: Send, *, is_head: bool) -> None:
        self._send = send
        self._is_head = is_head
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)
