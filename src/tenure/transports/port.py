"""What travels, and what a transport must do with it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

SECRET_PREFIX = "whsec_"  # noqa: S105  a prefix, not a secret
PRIVATE_KEY_PREFIX = "whsk_"
# A dot would make `id.timestamp.body`, the text that Standard Webhooks signs, ambiguous.
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")

DestinationT_contra = TypeVar("DestinationT_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One notification. Raises ValueError for an id or a time no receiver could rely on."""

    id: str
    """The same at every try, so that receivers can drop what they know: letters, digits, `_` and `-`."""
    timestamp: datetime
    """When this try was made, with its zone; receivers refuse what is older than some minutes."""
    body: bytes
    """UTF-8 text, sent as it is."""

    def __post_init__(self) -> None:
        if not _MESSAGE_ID.fullmatch(self.id):
            raise ValueError(f"not a valid message id: {self.id[:100]!r}")
        if self.timestamp.tzinfo is None:
            raise ValueError("the timestamp of a message needs its time zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that the receiver took the message."""

    status: int
    """The receiver's code, such as 200."""
    latency_seconds: float
    snippet: str | None
    """The first characters of the answer, printable; None when there were none or they are not for tenants to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoint:
    """Where a webhook goes."""

    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    """All current ones, newest first: `whsec_` (HMAC-SHA256) or `whsk_` (Ed25519). Two while a secret is rotated."""


class Transport(Protocol[DestinationT_contra]):
    """One channel that messages leave by. What a destination is, each transport says."""

    async def send(self, message: Message, destination: DestinationT_contra) -> Receipt:
        """Send once. Returns only when the receiver took it.

        Raises EgressRefusedError when the destination may not be called, DeliveryFailedError when it did not take it.
        """
