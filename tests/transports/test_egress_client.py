"""Where a call goes: resolution, TLS, proxies, headers."""

import asyncio
import socket
import threading

import pytest

from tenure.core.errors import DeliveryFailedError, EgressRefusedError
from tenure.transports.egress import ADDRESSES_TRIED_MAX, RESOLVER_THREADS, EgressClient, SystemResolver
from tenure.transports.policy import EgressPolicy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_a_post_arrives_as_it_was_given(serve, client_for):
    server = await serve(OK)
    response = await client_for(server, seconds=10).post(
        f"http://127.0.0.1:{server.port}/hook?key=1", {"X-One": "1"}, b'{"a": 1}'
    )
    assert (response.status, response.body, response.private) == (200, b"ok", True)
    assert 0 < response.latency_seconds < 10
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"a": 1}'
    assert head.split(b"\r\n") == [
        b"POST /hook?key=1 HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}".encode(),
        b"Content-Length: 8",
        b"Connection: close",
        b"X-One: 1",
    ]


async def test_loopback_is_refused_without_an_allow_list_and_nothing_connects(serve, system_trust):
    server = await serve(OK)
    client = EgressClient(EgressPolicy(allow_http=True, allowed_ports=(server.port,)), ssl_context=system_trust)
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0"):
        with pytest.raises(EgressRefusedError):
            await client.post(f"http://{host}:{server.port}/", {}, b"")
    assert server.connections == 0


async def test_open_and_closed_private_ports_are_refused_in_the_same_words(serve, system_trust):
    server = await serve(OK)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = (server.port, closed.getsockname()[1])
        client = EgressClient(EgressPolicy(allow_http=True, allowed_ports=ports), ssl_context=system_trust)
        words = set()
        for port in ports:
            with pytest.raises(EgressRefusedError) as refusal:
                await client.post(f"http://127.0.0.1:{port}/", {}, b"")
            words.add(str(refusal.value))
    assert len(words) == 1


async def test_a_name_that_changes_its_mind_is_called_only_where_it_was_judged(
    serve, client_for, redirecting, resolver
):
    server = await serve(OK)
    network, resolve = redirecting(), resolver(["93.184.216.34"], ["169.254.169.254"])
    client = client_for(server, seconds=10, resolve=resolve, network=network)
    url = f"http://rebind.example.com:{server.port}/"
    response = await client.post(url, {}, b"")
    # Asked once per connection: there is no second answer to be fooled by.
    assert (network.asked, resolve.asked, response.private) == (["93.184.216.34"], ["rebind.example.com"], False)
    with pytest.raises(EgressRefusedError):
        await client.post(url, {}, b"")
    assert network.asked == ["93.184.216.34"]
    assert b"Host: rebind.example.com:" in server.requests[0]


@pytest.mark.parametrize(
    "found",
    [
        ["93.184.216.34", "fd00::1"],
        ["2606:4700::1111", "10.0.0.1"],
        ["93.184.216.34", "1.1.1.1", "169.254.169.254"],
        ["64:ff9b::a9fe:a9fe", "93.184.216.34"],
        # More good ones than are ever tried: the bad one behind them counts all the same.
        [*(f"1.1.1.{last}" for last in range(9)), "192.168.1.1"],
    ],
)
async def test_a_name_with_one_bad_address_is_refused_and_nothing_connects(redirecting, resolver, found, system_trust):
    network = redirecting()
    client = EgressClient(EgressPolicy(), ssl_context=system_trust, resolve=resolver(found), network=network)
    with pytest.raises(EgressRefusedError):
        await client.post("https://mixed.example.com/", {}, b"")
    assert network.asked == []


async def test_the_next_address_is_tried_when_one_does_not_answer(serve, client_for, redirecting, resolver):
    server = await serve(OK)
    network = redirecting(refuses=["2606:4700::1111"])
    client = client_for(
        server, seconds=10, resolve=resolver(["2606:4700::1111", "93.184.216.34", "1.1.1.1"]), network=network
    )
    assert (await client.post(f"http://two.example.com:{server.port}/", {}, b"")).status == 200
    assert network.asked == ["2606:4700::1111", "93.184.216.34"]


async def test_an_address_that_swallows_everything_leaves_time_for_the_next(serve, client_for, redirecting, resolver):
    server = await serve(OK)
    network = redirecting(swallows=["2606:4700::1111"])
    client = client_for(server, seconds=3, resolve=resolver(["2606:4700::1111", "93.184.216.34"]), network=network)
    assert (await client.post(f"http://two.example.com:{server.port}/", {}, b"")).status == 200


async def test_a_name_with_one_private_address_is_private(serve, client_for, redirecting, resolver):
    server = await serve(OK)
    client = client_for(server, seconds=10, resolve=resolver(["93.184.216.34", "127.0.0.1"]), network=redirecting())
    assert (await client.post(f"http://two.example.com:{server.port}/", {}, b"")).private


async def test_only_a_few_addresses_are_tried(redirecting, resolver, system_trust):
    found = [f"1.1.1.{last}" for last in range(100)]
    network = redirecting(refuses=found)
    client = EgressClient(EgressPolicy(), ssl_context=system_trust, resolve=resolver(found), network=network)
    with pytest.raises(DeliveryFailedError, match="could not be reached"):
        await client.post("https://many.example.com/", {}, b"")
    assert network.asked == found[:ADDRESSES_TRIED_MAX]


async def test_a_name_without_an_address_cannot_be_reached(resolver, system_trust):
    client = EgressClient(EgressPolicy(), ssl_context=system_trust, resolve=resolver([]))
    with pytest.raises(DeliveryFailedError, match="could not be reached"):
        await client.post("https://empty.example.com/", {}, b"")


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_name_that_does_not_resolve_is_a_failure_that_may_pass(error, system_trust):
    async def resolve(host, port):
        raise error

    with pytest.raises(DeliveryFailedError, match="could not be resolved") as failure:
        await EgressClient(EgressPolicy(), ssl_context=system_trust, resolve=resolve).post(
            "https://none.example.com/", {}, b""
        )
    assert failure.value.retryable


async def test_a_silent_name_server_is_bounded_by_the_deadline(system_trust):
    async def resolve(host, port):
        await asyncio.sleep(600)

    client = EgressClient(EgressPolicy(total_deadline_seconds=0.3), ssl_context=system_trust, resolve=resolve)
    with pytest.raises(DeliveryFailedError, match=r"within 0\.3 s"):
        await asyncio.wait_for(client.post("https://slow.example.com/", {}, b""), 10)


async def test_silent_name_servers_do_not_take_the_threads_of_the_rest_of_the_process(monkeypatch, system_trust):
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(60) and [])
    client = EgressClient(EgressPolicy(total_deadline_seconds=0.5), ssl_context=system_trust, resolve=SystemResolver())
    calls = [client.post("https://slow.example.com/", {}, b"") for _ in range(4 * RESOLVER_THREADS)]
    try:
        waiting = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "alive"), 10) == "alive"
        assert {type(outcome) for outcome in await waiting} == {DeliveryFailedError}
    finally:
        release.set()


async def test_proxy_variables_are_not_followed(serve, client_for, monkeypatch):
    proxy, server = await serve(OK), await serve(OK)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    await client_for(server, seconds=10).post(f"http://127.0.0.1:{server.port}/", {}, b"")
    assert (proxy.connections, server.connections) == (0, 1)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "inner"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"CONNECTION": "keep-alive"},
        {"Proxy-Authorization": "x"},
        {"Expect": "100-continue"},
        {"X-One": "1\r\nHost: inner"},
        {"X-One": "1\n"},
        {"X-One\r\nHost": "inner"},
        {"X One": "1"},
        {"": "1"},
        {"X-One": "ü"},
        {"X-One": "\0"},
    ],
)
async def test_headers_that_would_change_the_request_are_refused(redirecting, resolver, headers, system_trust):
    network = redirecting()
    client = EgressClient(
        EgressPolicy(), ssl_context=system_trust, resolve=resolver(["93.184.216.34"]), network=network
    )
    with pytest.raises(EgressRefusedError):
        await client.post("https://example.com/", headers, b"")
    assert network.asked == []


async def test_tls_names_the_host_and_not_the_address(serve, client_for, resolver, certificate):
    server_tls, trusting = certificate
    named = []
    server_tls.sni_callback = lambda connection, name, context: named.append(name)
    server = await serve(OK, tls=server_tls)
    client = client_for(server, seconds=10, ssl_context=trusting, resolve=resolver(["127.0.0.1"]))
    response = await client.post(f"https://hooks.example.com:{server.port}/", {}, b"{}")
    server_tls.sni_callback = None
    assert (response.status, named) == (200, ["hooks.example.com"])
    assert f"Host: hooks.example.com:{server.port}".encode() in server.requests[0]


async def test_a_certificate_for_an_ip_address_is_good_for_it(serve, client_for, certificate):
    server_tls, trusting = certificate
    server = await serve(OK, tls=server_tls)
    client = client_for(server, seconds=10, ssl_context=trusting)
    assert (await client.post(f"https://127.0.0.1:{server.port}/", {}, b"")).status == 200


async def test_a_certificate_for_another_host_or_of_an_unknown_authority_is_not_trusted(
    serve, client_for, resolver, certificate
):
    server_tls, trusting = certificate
    server = await serve(OK, tls=server_tls)
    strangers = ("other.example.com", "a_b.example.com", "xn--a.example.com", f"{'a' * 63}.example.com")
    for host, context in (*((name, trusting) for name in strangers), ("hooks.example.com", None)):
        client = client_for(server, seconds=10, ssl_context=context, resolve=resolver(["127.0.0.1"]))
        with pytest.raises(DeliveryFailedError, match="no trusted TLS"):
            await client.post(f"https://{host}:{server.port}/", {}, b"secret")
    assert server.requests == []


async def test_a_cancelled_call_is_cancelled_and_frees_its_connection(serve, client_for):
    async def hang(reader, writer):
        await server.read_request(reader)

    server = await serve(hang)
    call = asyncio.create_task(client_for(server, seconds=60).post(f"http://127.0.0.1:{server.port}/", {}, b""))
    await server.wait_for_requests(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(server.gone.wait(), 10)
