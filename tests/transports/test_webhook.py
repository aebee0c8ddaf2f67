import base64
import binascii
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from tenure.core.errors import DeliveryFailedError, EgressRefusedError
from tenure.transports.port import Message, Transport, WebhookEndpoint
from tenure.transports.webhook import WebhookTransport, check_secret, new_secret, sign

OLD, NEW, FOREIGN = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"o", b"n", b"f"))
SEED = bytes(range(32))
PRIVATE = f"whsk_{base64.b64encode(SEED).decode()}"


def message(body: bytes = b'{"status":"succeeded"}', **changes) -> Message:
    return Message(**{"id": "msg_0190", "timestamp": datetime.now(UTC), "body": body} | changes)


def headers_of(sent: Message, *secrets: str) -> dict[str, str]:
    return {
        "webhook-id": sent.id,
        "webhook-timestamp": str(int(sent.timestamp.timestamp())),
        "webhook-signature": sign(sent, secrets),
    }


def taken_apart(request: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = request.partition(b"\r\n\r\n")
    return dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:]), body


async def test_what_is_on_the_wire_verifies_with_the_standard_library_of_the_standard(serve, client_for):
    server = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    transport: Transport[WebhookEndpoint] = WebhookTransport(client_for(server, seconds=10))
    sent = message('{"name": "Zoë  \\u0000", "n":1}\n'.encode())
    endpoint = WebhookEndpoint(url=f"http://127.0.0.1:{server.port}/hook", secrets=(NEW, OLD))
    receipt = await transport.send(sent, endpoint)
    headers, body = taken_apart(server.requests[0])
    assert body == sent.body
    assert headers["Content-Type"] == "application/json"
    for secret in (NEW, OLD):
        assert Webhook(secret).verify(body, headers) == json.loads(sent.body)
    assert receipt.status == 200
    assert 0 < receipt.latency_seconds < 10


async def test_only_public_answers_are_shown_and_only_their_printable_beginning(
    serve, client_for, redirecting, resolver
):
    answer = b"\x1b[31mthank\r\nyou \xff" + b"x" * 5000
    server = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
    endpoint = WebhookEndpoint(url=f"http://hooks.example.com:{server.port}/", secrets=(NEW,))
    snippets = []
    for address in ("93.184.216.34", "127.0.0.1"):
        client = client_for(server, seconds=10, resolve=resolver([address]), network=redirecting())
        snippets.append((await WebhookTransport(client).send(message(), endpoint)).snippet)
    shown, hidden = snippets
    assert hidden is None
    assert shown.startswith("[31mthank  you \N{REPLACEMENT CHARACTER}xx")
    assert len(shown) <= 200
    assert shown.isprintable()


async def test_failures_of_the_client_pass_through(serve, client_for):
    server = await serve(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
    transport = WebhookTransport(client_for(server, seconds=10))
    with pytest.raises(DeliveryFailedError) as failure:
        await transport.send(message(), WebhookEndpoint(url=f"http://127.0.0.1:{server.port}/", secrets=(NEW,)))
    assert failure.value.status == 410
    with pytest.raises(EgressRefusedError):
        await transport.send(message(), WebhookEndpoint(url="https://169.254.169.254/", secrets=(NEW,)))


def test_old_and_new_secret_verify_while_they_are_rotated_and_a_foreign_one_does_not():
    sent = message()
    headers = headers_of(sent, NEW, OLD)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (NEW, OLD):
        Webhook(secret).verify(sent.body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(FOREIGN).verify(sent.body, headers)


@pytest.mark.parametrize("name", ["body", "webhook-id", "webhook-timestamp"])
def test_whatever_is_tampered_with_the_signature_fails(name):
    sent = message()
    headers, body = headers_of(sent, NEW), sent.body
    if name == "body":
        body = body.replace(b"succeeded", b"failed")
    elif name == "webhook-id":
        headers[name] += "x"
    else:
        headers[name] = str(int(headers[name]) - 1)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body, headers)


def test_every_try_has_a_signature_of_its_own_under_the_same_id():
    first = message()
    again = message(timestamp=first.timestamp + timedelta(seconds=5))
    assert first.id == again.id
    assert sign(first, [NEW]) != sign(again, [NEW])


@given(
    st.text(max_size=200),
    st.integers(min_value=-720, max_value=720).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    st.binary(min_size=24, max_size=64),
)
def test_any_text_in_any_zone_with_any_secret_verifies(body, zone, key):
    try:
        encoded = body.encode()
    except UnicodeEncodeError:
        return
    sent = message(encoded, timestamp=datetime.now(zone))
    secret = f"whsec_{base64.b64encode(key).decode()}"
    Webhook(secret).verify(encoded, headers_of(sent, secret), json_parse=False)


@pytest.mark.parametrize(
    "halves", [SEED, SEED + Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()]
)
def test_an_ed25519_signature_verifies_with_the_public_key_beside_a_symmetric_one(halves):
    sent = message()
    headers = headers_of(sent, f"whsk_{base64.b64encode(halves).decode()}", NEW)
    asymmetric, _ = headers["webhook-signature"].split(" ")
    version, _, signature = asymmetric.partition(",")
    assert version == "v1a"
    public = Ed25519PrivateKey.from_private_bytes(SEED).public_key()
    signed = b".".join((sent.id.encode(), headers["webhook-timestamp"].encode(), sent.body))
    public.verify(base64.b64decode(signature), signed)
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature), signed + b" ")
    Webhook(NEW).verify(sent.body, headers)


@pytest.mark.parametrize("secret", [OLD, PRIVATE, "whsec_" + "A" * 32, "whsec_" + "A" * 86, "whsec_" + "A" * 43])
def test_a_good_secret_is_accepted(secret):
    check_secret(secret)
    sign(message(), [secret])


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsk_",
        "A" * 44,
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsec_!" + "A" * 43,
        "whsec_" + "A" * 41,
        "whsec_" + "A" * 40 + "====",
        "whsec_" + "A" * 43 + "\n",
        "whsec_" + "-_" * 22,
        "whsec_" + "é" * 44,
        "whpk_" + base64.b64encode(SEED).decode(),
        "whsk_" + base64.b64encode(b"x" * 31).decode(),
        "whsk_" + base64.b64encode(b"x" * 64).decode(),
    ],
)
def test_a_bad_secret_is_refused_without_being_repeated(secret):
    for attempt in (lambda: check_secret(secret), lambda: sign(message(), [secret])):
        with pytest.raises(ValueError, match=r"secret|Ed25519") as refusal:
            attempt()
        assert refusal.value.__cause__ is None
        assert secret[6:] == "" or secret[6:] not in str(refusal.value)


def test_a_bad_secret_beside_a_good_one_is_refused_and_so_are_none_and_too_many():
    for secrets in ((NEW, "whsec_x"), (), (NEW,) * 9):
        with pytest.raises(ValueError, match="secret"):
            sign(message(), secrets)


def test_new_secrets_are_good_and_differ():
    made = {new_secret() for _ in range(50)}
    assert len(made) == 50
    for secret in made:
        check_secret(secret)
        assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32


def test_no_secret_shows_in_a_printed_endpoint():
    shown = repr(WebhookEndpoint(url="https://example.com/?token=hunter2", secrets=(NEW,)))
    assert NEW not in shown
    assert "hunter2" not in shown


def test_a_malformed_signature_is_no_surprise_to_the_verifier():
    """The library raises binascii.Error there: receivers must catch it too. Kept as a note for the guide."""
    sent = message()
    headers = headers_of(sent, NEW) | {"webhook-signature": "v1,A"}
    with pytest.raises(binascii.Error):
        Webhook(NEW).verify(sent.body, headers)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"id": "a.b"},
        {"id": "a b"},
        {"id": "a\r\nHost: x"},
        {"id": "é"},
        {"id": "a" * 201},
        {"timestamp": datetime(2026, 1, 1)},  # noqa: DTZ001  that is the point
    ],
)
def test_a_message_no_receiver_could_rely_on_is_not_made(changes):
    with pytest.raises(ValueError, match="message"):
        message(**changes)


def test_a_body_that_is_not_text_is_not_signed():
    with pytest.raises(ValueError, match="utf-8"):
        sign(message(b"\xff"), [NEW])
