"""Webhooks after Standard Webhooks 1.0 (https://www.standardwebhooks.com): signed, thin, at least once.

The id stays the same over retries and the timestamp does not, so a signature is good for one try.
"""

import base64
import secrets as randomness
from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from standardwebhooks import Webhook

from tenure.transports.egress import EgressClient, Response
from tenure.transports.port import PRIVATE_KEY_PREFIX, SECRET_PREFIX, Message, Receipt, WebhookEndpoint

SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64
SECRETS_MAX = 8
SNIPPET_CHARS_MAX = 200
_NEW_SECRET_BYTES = 32
_SEED_BYTES = 32


class WebhookTransport:
    """A `Transport[WebhookEndpoint]`."""

    def __init__(self, client: EgressClient) -> None:
        self._client = client

    async def send(self, message: Message, destination: WebhookEndpoint) -> Receipt:
        """Send once. Raises as `EgressClient.post` does, and ValueError as `sign` does."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Tenure",
            "webhook-id": message.id,
            "webhook-timestamp": str(_unix_seconds(message.timestamp)),
            "webhook-signature": sign(message, destination.secrets),
        }
        response = await self._client.post(destination.url, headers, message.body)
        return Receipt(
            status=response.status, latency_seconds=response.latency_seconds, snippet=_readable_snippet(response)
        )


def sign(message: Message, secrets: Sequence[str]) -> str:
    """The webhook-signature header: one signature per secret, so that receivers may change theirs at their leisure.

    Raises ValueError for a body that is not UTF-8, no secret or too many, or one that `check_secret` refuses.
    """
    if not 1 <= len(secrets) <= SECRETS_MAX:
        raise ValueError(f"a webhook is signed with 1 to {SECRETS_MAX} secrets, not {len(secrets)}")
    return " ".join(_sign_once(message, secret) for secret in secrets)


def check_secret(secret: str) -> None:
    """Raises ValueError, with a sentence that does not hold the secret, when it cannot be signed with."""
    if secret.startswith(PRIVATE_KEY_PREFIX):
        _read_private_key(secret)
    else:
        _read_symmetric(secret)


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(randomness.token_bytes(_NEW_SECRET_BYTES)).decode()


def _sign_once(message: Message, secret: str) -> str:
    # Strict decoding: the same bytes come out when the library encodes the text again.
    body = message.body.decode("utf-8")
    if secret.startswith(PRIVATE_KEY_PREFIX):
        signed = f"{message.id}.{_unix_seconds(message.timestamp)}.{body}".encode()
        return f"v1a,{base64.b64encode(_read_private_key(secret).sign(signed)).decode()}"
    # The library takes the hour of any zone for UTC's.
    return Webhook(_read_symmetric(secret)).sign(message.id, message.timestamp.astimezone(UTC), body)


def _read_symmetric(secret: str) -> bytes:
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError(f"a webhook secret starts with {SECRET_PREFIX}")
    key = _decode(secret.removeprefix(SECRET_PREFIX))
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(f"a webhook secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, not {len(key)}")
    return key


def _read_private_key(secret: str) -> Ed25519PrivateKey:
    """The seed (RFC 8032), alone or, as most libraries keep it, followed by the public key."""
    data = _decode(secret.removeprefix(PRIVATE_KEY_PREFIX))
    if len(data) not in {_SEED_BYTES, 2 * _SEED_BYTES}:
        raise ValueError(f"an Ed25519 key has {_SEED_BYTES} or {2 * _SEED_BYTES} bytes, not {len(data)}")
    key = Ed25519PrivateKey.from_private_bytes(data[:_SEED_BYTES])
    if data[_SEED_BYTES:] not in {b"", key.public_key().public_bytes_raw()}:
        raise ValueError("the two halves of the Ed25519 key do not belong together")
    return key


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    padding = "=" * (-len(bare) % 4)
    detail = "a webhook secret is base64 after its prefix"
    if text[len(bare) :] not in {"", padding}:
        raise ValueError(detail)
    try:
        return base64.b64decode(bare + padding, validate=True)
    except ValueError:
        # Without the cause: it could quote the secret.
        raise ValueError(detail) from None


def _unix_seconds(moment: datetime) -> int:
    return floor(moment.timestamp())


def _readable_snippet(response: Response) -> str | None:
    if response.private:
        return None
    text = response.body[: 4 * SNIPPET_CHARS_MAX].decode("utf-8", errors="replace")[:SNIPPET_CHARS_MAX]
    return "".join(char if char.isprintable() else " " for char in text).strip() or None
