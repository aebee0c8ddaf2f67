"""Receivers that hang, drip, flood, lie and slam the door. Every one must cost a bounded time and no more."""

import asyncio
import email.utils
import os
import socket
import struct
import time

import pytest

from tenure.core.errors import DeliveryFailedError
from tenure.transports.egress import FRAMING_BYTES_MAX

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MUCH_SECONDS = 10
"""Far more than any deadline here: only "for ever" takes longer, however busy the machine is."""


async def post(client, server, *, scheme="http", body=b"{}"):
    return await asyncio.wait_for(
        client.post(f"{scheme}://127.0.0.1:{server.port}/hook?token=hunter2", {}, body), MUCH_SECONDS
    )


async def fails(client, server, **options) -> DeliveryFailedError:
    """The call fails, says nothing it should not, and lets go of its connection."""
    with pytest.raises(DeliveryFailedError) as failure:
        await post(client, server, **options)
    assert "hunter2" not in str(failure.value)
    await asyncio.wait_for(server.gone.wait(), MUCH_SECONDS)
    return failure.value


def repeating(opening: bytes, block: bytes, pause_seconds: float = 0.0, times: int = 1_000_000):
    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(opening)
        for _ in range(times):
            writer.write(block)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return handle


async def test_a_receiver_that_accepts_and_never_answers(serve, client_for):
    async def hang(reader, writer):
        await reader.readuntil(b"\r\n\r\n")

    server = await serve(hang)
    assert "no complete answer within 0.4 s" in str(await fails(client_for(server), server))


async def test_a_receiver_that_never_reads(serve, client_for):
    async def ignore(reader, writer):
        reader._transport.pause_reading()
        await asyncio.sleep(0.8)
        reader._transport.resume_reading()

    server = await serve(ignore)
    error = await fails(client_for(server), server, body=b" " * 32 * 1024 * 1024)
    assert "no complete answer" in str(error)


@pytest.mark.parametrize(
    "opening",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["status line", "header", "body", "chunk size"],
)
async def test_a_drip_is_bounded_by_the_whole_time_and_not_by_the_pause_between_bytes(serve, client_for, opening):
    server = await serve(repeating(opening, b"1", pause_seconds=0.05, times=200))
    assert "no complete answer" in str(await fails(client_for(server), server))


@pytest.mark.parametrize("framing", [b"", b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_an_endless_body_is_read_up_to_its_cap_and_left(serve, client_for, framing):
    block = b"1000\r\n" + b"x" * 4096 + b"\r\n" if b"chunked" in framing else b"x" * 4096
    server = await serve(repeating(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n", block))
    response = await post(client_for(server, seconds=MUCH_SECONDS), server)
    assert response.status == 200
    assert response.body == b"x" * 64 * 1024
    await asyncio.wait_for(server.gone.wait(), MUCH_SECONDS)


@pytest.mark.parametrize(
    ("opening", "block"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: 1\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\nX-Header: ", b"x" * 4096),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"extension" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: 1\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"e" * 4000 + b"\r\nx\r\n"),
    ],
    ids=["100-continue", "early hints", "headers", "one header", "chunk extension", "trailers", "fat chunks"],
)
async def test_endless_framing_ends_by_its_size_long_before_the_deadline(serve, client_for, opening, block):
    server = await serve(repeating(opening, block))
    error = await fails(client_for(server, seconds=8), server)
    assert "no complete answer" not in str(error)


async def test_the_framing_allowance_is_enough_for_honest_headers(serve, client_for):
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(60))
    assert len(headers) < FRAMING_BYTES_MAX
    server = await serve(b"HTTP/1.1 200 OK\r\n" + headers + b"Content-Length: 65536\r\n\r\n" + b"y" * 65536)
    response = await post(client_for(server, seconds=MUCH_SECONDS), server)
    assert len(response.body) == 65536


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 304])
async def test_a_redirect_is_a_failure_and_is_not_followed(serve, client_for, status):
    elsewhere = await serve(OK)
    location = f"http://127.0.0.1:{elsewhere.port}/"
    server = await serve(f"HTTP/1.1 {status} Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert error.status == status
    assert "redirects are not followed" in str(error)
    assert elsewhere.connections == 0


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413, 429, 500, 502, 503, 504, 599, 999])
async def test_any_other_status_is_a_failure_that_carries_it(serve, client_for, status):
    server = await serve(f"HTTP/1.1 {status} No\r\nContent-Length: 15\r\n\r\ninner secret 42".encode())
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert (error.status, error.retry_after_seconds) == (status, None)
    assert str(error) == f"the receiver answered {status}"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_success(serve, client_for, status):
    server = await serve(f"HTTP/1.1 {status} Yes\r\nContent-Length: 0\r\n\r\n".encode())
    response = await post(client_for(server, seconds=MUCH_SECONDS), server)
    assert (response.status, response.body) == (status, b"")


async def test_switching_protocols_is_not_success(serve, client_for):
    server = await serve(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    await fails(client_for(server, seconds=MUCH_SECONDS), server)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7, 7),
        ("-7", 0, 0),
        ("99999999999999999999", 86_400, 86_400),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        (email.utils.formatdate(time.time() + 36_000, usegmt=True), 1, 36_000),
    ],
    ids=["seconds", "negative", "huge", "past date", "date"],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_asked_for_is_passed_on_within_bounds(serve, client_for, status, value, low, high):
    server = await serve(f"HTTP/1.1 {status} Slow down\r\nReTrY-aFtEr: {value}\r\nContent-Length: 0\r\n\r\n".encode())
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert error.status == status
    assert low <= error.retry_after_seconds <= high


async def test_a_wait_that_is_none_is_no_wait(serve, client_for):
    server = await serve(b"HTTP/1.1 429 Slow down\r\nRetry-After: \xff soon\r\nContent-Length: 0\r\n\r\n")
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert (error.status, error.retry_after_seconds) == (429, None)


async def test_a_failure_is_known_by_its_status_even_when_its_body_never_ends(serve, client_for):
    server = await serve(repeating(b"HTTP/1.1 500 No\r\n\r\n", b"x", pause_seconds=0.05, times=200))
    assert (await fails(client_for(server, seconds=MUCH_SECONDS), server)).status == 500


@pytest.mark.parametrize("opening", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"], ids=["at once", "midway"])
async def test_a_reset_connection(serve, client_for, opening):
    async def reset(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(opening)
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await serve(reset)
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert error.status is None


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x00\xff" * 10,
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"-ERR unknown command 'POST'\r\n",
    ],
)
async def test_an_answer_that_is_not_http(serve, client_for, answer):
    async def answer_and_leave(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.write_eof()

    server = await serve(answer_and_leave)
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server)
    assert error.status is None
    assert "OpenSSH" not in str(error)
    assert "ERR" not in str(error)


async def test_a_receiver_that_hangs_up_without_a_word(serve, client_for):
    async def leave(reader, writer):
        writer.close()

    server = await serve(leave)
    assert (await fails(client_for(server, seconds=MUCH_SECONDS), server)).retryable


async def test_nobody_listens(serve, client_for):
    server = await serve(OK)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server.port = closed.getsockname()[1]
        with pytest.raises(DeliveryFailedError, match="could not be reached"):
            await post(client_for(server, seconds=MUCH_SECONDS), server)


async def test_a_tls_handshake_that_never_ends_frees_its_connection(serve, client_for):
    async def stall(reader, writer):
        await reader.read(1)

    server = await serve(stall)
    assert "no complete answer" in str(await fails(client_for(server), server, scheme="https"))


async def test_a_tls_handshake_with_something_that_speaks_no_tls(serve, client_for):
    async def babble(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    server = await serve(babble)
    error = await fails(client_for(server, seconds=MUCH_SECONDS), server, scheme="https")
    assert "no trusted TLS" in str(error)


async def test_a_tls_connection_that_breaks_in_the_middle_of_an_answer(serve, client_for, certificate):
    server_tls, trusting = certificate

    async def cut(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
        await writer.drain()
        writer.transport.abort()

    server = await serve(cut, tls=server_tls)
    await fails(client_for(server, seconds=MUCH_SECONDS, ssl_context=trusting), server, scheme="https")


async def test_a_tls_connection_that_turns_to_noise(serve, client_for, certificate):
    server_tls, trusting = certificate

    async def noise(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as bare:
            bare.send(b"\x17\x03\x03\x00\x20" + b"x" * 32)

    server = await serve(noise, tls=server_tls)
    error = await fails(client_for(server, seconds=MUCH_SECONDS, ssl_context=trusting), server, scheme="https")
    assert "TLS" in str(error)


async def test_an_endless_answer_over_tls_is_capped_too(serve, client_for, certificate):
    server_tls, trusting = certificate
    client_options = {"seconds": MUCH_SECONDS, "ssl_context": trusting}
    body = await serve(repeating(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 4096), tls=server_tls)
    assert len((await post(client_for(body, **client_options), body, scheme="https")).body) == 64 * 1024
    loop = await serve(repeating(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), tls=server_tls)
    assert "no complete answer" not in str(await fails(client_for(loop, **client_options), loop, scheme="https"))


async def test_a_hundred_hanging_receivers_do_not_hold_up_an_honest_one(serve, client_for):
    async def answer_some(reader, writer):
        request = await server.read_request(reader)
        if b"good" in request:
            writer.write(OK)
            await writer.drain()

    server = await serve(answer_some)
    client = client_for(server, seconds=60)
    url = f"http://127.0.0.1:{server.port}/"
    hanging = [asyncio.create_task(client.post(url, {}, b"bad")) for _ in range(100)]
    await server.wait_for_requests(100)
    assert (await post(client, server, body=b"good")).status == 200
    assert not any(call.done() for call in hanging)
    for call in hanging:
        call.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
