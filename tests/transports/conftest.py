"""Servers on loopback that misbehave in one way each, and clients that may call them."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Sequence

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tenure.transports.egress import EgressClient
from tenure.transports.policy import EgressPolicy

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Counts its guests, and knows when they have gone."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.connections = 0
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()
        self._asked = asyncio.Condition()
        self.port = 0

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._handler(reader, writer)
                # Whatever the handler does last, the guest has gone when nothing more can come.
                while await reader.read(65536):
                    pass
        finally:
            self.gone.set()
            writer.transport.abort()

    async def read_request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        request = head + await reader.readexactly(length)
        async with self._asked:
            self.requests.append(request)
            self._asked.notify_all()
        return request

    async def wait_for_requests(self, count: int) -> None:
        async with self._asked:
            await asyncio.wait_for(self._asked.wait_for(lambda: len(self.requests) >= count), 20)


@pytest.fixture
async def serve():
    """`await serve(handler, tls=None)` -> Server. The handler may be bytes: a plain answer to a whole request."""
    running = []

    async def start(handler: Handler | bytes, tls: ssl.SSLContext | None = None) -> Server:
        async def answer(reader, writer):
            await server.read_request(reader)
            writer.write(handler)
            await writer.drain()

        server = Server(answer if isinstance(handler, bytes) else handler)
        listener = await asyncio.start_server(server.greet, "127.0.0.1", 0, ssl=tls)
        server.port = listener.sockets[0].getsockname()[1]
        running.append((listener, server))
        return server

    yield start
    for listener, server in running:
        listener.close()
        if server.connections:
            await asyncio.wait_for(server.gone.wait(), 10)


@pytest.fixture(scope="session")
def system_trust():
    """Made once: reading the system's certificates is the slowest part of a client."""
    return httpcore2.default_ssl_context()


@pytest.fixture
def client_for(system_trust):
    """A client that may call one loopback server, impatiently."""

    def build(server: Server, *, seconds: float = 0.4, **options) -> EgressClient:
        policy = EgressPolicy(
            allowed_networks=LOOPBACK, allow_http=True, allowed_ports=(server.port,), total_deadline_seconds=seconds
        )
        return EgressClient(policy, **{"ssl_context": system_trust} | options)

    return build


class RedirectingNetwork(httpcore2.AsyncNetworkBackend):
    """Writes down every address it is asked for and connects to loopback instead: no test leaves the machine."""

    def __init__(self, *, refuses: Sequence[str] = (), swallows: Sequence[str] = ()) -> None:
        self.asked: list[str] = []
        self._refuses = refuses
        self._swallows = swallows
        self._real = httpcore2.AnyIOBackend()

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):  # noqa: ASYNC109
        self.asked.append(host)
        if host in self._refuses:
            raise httpcore2.ConnectError
        if host in self._swallows:
            await asyncio.sleep(600 if timeout is None else timeout)
            raise httpcore2.ConnectTimeout
        return await self._real.connect_tcp("127.0.0.1", port, timeout, local_address, socket_options)


@pytest.fixture
def redirecting():
    return RedirectingNetwork


@pytest.fixture
def resolver():
    """`resolver(["a"], ["b"])`: the first call answers with a, every later one with b."""

    def build(*answers: list[str]):
        left = list(answers)

        async def resolve(host: str, port: int) -> list[str]:
            resolve.asked.append(host)
            return left.pop(0) if len(left) > 1 else left[0]

        resolve.asked = []
        return resolve

    return build


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """(server context, client context that trusts it) for hooks.example.com and 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's own authority")])
    now = dt.datetime.now(dt.UTC)
    hosts = [x509.DNSName("hooks.example.com"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(folder / "cert.pem")
    return server, trusting
