"""The one way out: POST to an address somebody else wrote down, without being turned against our own network.

It speaks HTTP through httpcore2 and not through httpx2: nothing below follows redirects, reads proxy variables, keeps
cookies or unpacks bodies, so nothing has to be switched off. Every call makes a connection of its own, so that every
call is judged anew and no receiver can hold a slot of somebody else's.
"""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import httpcore2

from tenure.core.errors import DeliveryFailedError, EgressRefusedError
from tenure.transports.addresses import is_public
from tenure.transports.policy import EgressPolicy, Target, check_addresses, read_target
from tenure.transports.retry_after import read_retry_after

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host, as text. Raises OSError."""

ADDRESSES_TRIED_MAX = 4
FRAMING_BYTES_MAX = 128 * 1024
"""What an answer may send besides the body that is kept: status, headers, 1xx answers, chunk sizes."""
RESOLVER_THREADS = 8

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
# They decide who is asked and where the message ends.
_OWN_HEADERS = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
# OSError: what the library lets through, such as a TLS error in the middle of an answer.
_NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A 2xx answer."""

    status: int
    body: bytes
    """Its beginning, at most `EgressPolicy.body_bytes_max`."""
    latency_seconds: float
    private: bool
    """It came from an allow-listed private network: its body is not for tenants to see."""


class EgressClient:
    """Calls what the policy allows. Safe to share between tasks; holds no connection between calls.

    `ssl_context` decides which certificates are trusted; None means the system's, or SSL_CERT_FILE. `resolve` and
    `network` are there for tests.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._policy = policy
        self._ssl_context = httpcore2.default_ssl_context() if ssl_context is None else ssl_context
        self._resolve = SystemResolver() if resolve is None else resolve
        self._network = httpcore2.AnyIOBackend() if network is None else network

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> Response:
        """POST once.

        Raises EgressRefusedError before any byte is sent when the policy forbids it, DeliveryFailedError when the
        receiver cannot be reached in time or answers anything but 2xx; `status` 410 means it wants no more.
        """
        target = read_target(url, self._policy)
        lines = _request_headers(target, headers, content)
        deadline_seconds = self._policy.total_deadline_seconds
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._exchange(target, lines, content)
        except TimeoutError as error:
            raise DeliveryFailedError(f"no complete answer within {deadline_seconds:g} s") from error
        except _NETWORK_ERRORS as error:
            raise DeliveryFailedError(_network_detail(error)) from error

    async def _exchange(self, target: Target, lines: list[tuple[str, str]], content: bytes) -> Response:
        started = time.monotonic()
        network = _GuardedNetwork(self._policy, self._resolve, self._network)
        url = httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        connection = httpcore2.AsyncHTTPConnection(
            url.origin, ssl_context=self._ssl_context, network_backend=network, retries=0
        )
        async with connection, connection.stream("POST", url, headers=lines, content=content) as answer:
            _refuse_failure(answer)
            body = await _read_body(answer, self._policy.body_bytes_max)
        latency_seconds = time.monotonic() - started
        return Response(status=answer.status, body=body, latency_seconds=latency_seconds, private=network.private)


class SystemResolver:
    """The system's name resolution, in threads of its own.

    The event loop's default threads serve the whole process; slow name servers of a few receivers would stop them all.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="tenure-resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return [str(address[0]) for *_, address in found]


class _GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Resolves, judges and connects in one step: the address judged is the address called, so DNS cannot change it."""

    def __init__(self, policy: EgressPolicy, resolve: Resolve, network: httpcore2.AsyncNetworkBackend) -> None:
        self._policy = policy
        self._resolve = resolve
        self._network = network
        self.private = False

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  the base class's signature; the policy's deadline rules
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise DeliveryFailedError("the host name could not be resolved") from error
        addresses = check_addresses(found, self._policy)
        self.private = not all(is_public(address) for address in addresses)
        tried = addresses[:ADDRESSES_TRIED_MAX]
        failure: Exception = httpcore2.ConnectError("the name has no address")
        for address in tried:
            try:
                stream = await self._network.connect_tcp(
                    str(address),
                    port,
                    # A silent first address must leave time for the next.
                    timeout=self._policy.total_deadline_seconds / len(tried),
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _MeteredStream(stream, self._policy.body_bytes_max + FRAMING_BYTES_MAX)
        raise failure


class _MeteredStream(httpcore2.AsyncNetworkStream):
    """Stops listening after so many bytes: endless headers, 1xx answers or chunk sizes never become a body."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, bytes_left: int) -> None:
        self._stream = stream
        self._bytes_left = bytes_left

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  base class
        if self._bytes_left <= 0:
            raise httpcore2.ReadError("the answer is too long")
        block = await self._stream.read(min(max_bytes, self._bytes_left), timeout)
        self._bytes_left -= len(block)
        return block

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  base class
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  base class
    ) -> httpcore2.AsyncNetworkStream:
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            # The library forgets the socket when a handshake is cancelled, which is what our deadline does.
            await self._stream.aclose()
            raise
        return _MeteredStream(stream, self._bytes_left)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


def _request_headers(target: Target, headers: Mapping[str, str], content: bytes) -> list[tuple[str, str]]:
    """Ours first. Raises EgressRefusedError for headers that would change the request's meaning."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise EgressRefusedError("a header has characters that are not allowed")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("proxy-"):
            raise EgressRefusedError(f"the header {name.lower()} is not the sender's to set")
    # Nobody reads what follows the answer, so the receiver need not wait for another request.
    own = [("Host", target.authority), ("Content-Length", str(len(content))), ("Connection", "close")]
    return own + list(headers.items())


def _refuse_failure(answer: httpcore2.Response) -> None:
    """Only 2xx is success. The body of anything else is not even read: it is no business of the message's sender."""
    status = answer.status
    if 200 <= status < 300:  # noqa: PLR2004  RFC 9110, 15.3
        return
    wait = next((value for name, value in answer.headers if name.lower() == b"retry-after"), None)
    retry_after_seconds = None if wait is None else read_retry_after(wait.decode("latin-1"), datetime.now(UTC))
    redirect = "; redirects are not followed" if 300 <= status < 400 else ""  # noqa: PLR2004  RFC 9110, 15.4
    detail = f"the receiver answered {status}{redirect}"
    raise DeliveryFailedError(detail, status=status, retry_after_seconds=retry_after_seconds)


async def _read_body(answer: httpcore2.Response, bytes_max: int) -> bytes:
    body = bytearray()
    async with aclosing(answer.aiter_stream()) as blocks:
        async for block in blocks:
            body += block[: bytes_max - len(body)]
            if len(body) >= bytes_max:
                break
    return bytes(body)


def _network_detail(error: Exception) -> str:
    """Coarse on purpose: finer words would let a tenant map a network with test deliveries."""
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return "no trusted TLS connection to the receiver could be made"
    if isinstance(error, httpcore2.ProtocolError):
        return "the receiver's answer was no complete HTTP answer"
    return "the receiver could not be reached, or broke the connection"
