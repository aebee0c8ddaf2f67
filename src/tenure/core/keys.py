"""API keys: how one is written, made, read and compared. `tnr_live_<id>_<secret>`; only a SHA-256 digest is stored.

A slow password hash would add nothing: the secret is 256 random bits, not something a person chose.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum

from tenure.core.errors import ForbiddenError
from tenure.core.ids import TenantId

KEY_ID_BYTES = 10
KEY_SECRET_BYTES = 32
KEY_RANDOM_BYTES = KEY_ID_BYTES + KEY_SECRET_BYTES
"""How many random bytes `make_key` needs."""
KEY_CHARS = 78
"""Length of every key: prefix 9, id 16, underscore, secret 52."""
NO_DIGEST = bytes(32)
"""What to compare with when the id is unknown, so that an unknown id takes as long as a wrong secret."""

# Base32 keeps a key one double-clickable word: no '-' and no '_' of its own.
_KEY = re.compile(r"tnr_live_([a-z2-7]{16})_[a-z2-7]{52}", re.ASCII)


class Scope(StrEnum):
    """What a key may do."""

    EXPORTS_READ = "exports:read"
    EXPORTS_EXECUTE = "exports:execute"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentedKey:
    """A well-formed key somebody sent; nothing is known yet about whether it is valid."""

    key_id: str
    digest: bytes = field(repr=False)
    """SHA-256 of the whole key text: what `key_matches` compares with the stored one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key just made. `text` is shown once and never stored; id and digest are."""

    key_id: str
    text: str = field(repr=False)
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking. Operators belong to no tenant."""

    key_id: str
    tenant_id: TenantId | None
    scopes: frozenset[Scope]

    def tenant_for(self, scope: Scope) -> TenantId:
        """The tenant this key acts for. Raises ForbiddenError: the scope is missing, or the key has no tenant."""
        if scope not in self.scopes or self.tenant_id is None:
            raise ForbiddenError(scope)
        return self.tenant_id

    def require(self, scope: Scope) -> None:
        """Raises ForbiddenError naming the scope the key lacks."""
        if scope not in self.scopes:
            raise ForbiddenError(scope)


def make_key(random_bytes: bytes) -> NewKey:
    """A key from `KEY_RANDOM_BYTES` random bytes; the caller brings the randomness."""
    if len(random_bytes) != KEY_RANDOM_BYTES:
        raise ValueError(f"a key needs {KEY_RANDOM_BYTES} random bytes, not {len(random_bytes)}")
    key_id = _base32(random_bytes[:KEY_ID_BYTES])
    text = f"tnr_live_{key_id}_{_base32(random_bytes[KEY_ID_BYTES:])}"
    return NewKey(key_id=key_id, text=text, digest=key_digest(text))


def read_key(text: str) -> PresentedKey | None:
    """The key in `text`, or None when it cannot be one. Cheap for text of any length."""
    found = _KEY.fullmatch(text) if len(text) == KEY_CHARS else None
    return PresentedKey(key_id=found[1], digest=key_digest(text)) if found else None


def read_authorization(header: str | None) -> PresentedKey | None:
    """The key in an `Authorization` header, or None: absent, another scheme, or malformed."""
    scheme, _, text = (header or "").partition(" ")
    return read_key(text) if scheme.lower() == "bearer" else None


def key_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()


def key_matches(presented: PresentedKey, stored_digest: bytes) -> bool:
    """In constant time. Call it with `NO_DIGEST` when the id is unknown."""
    return hmac.compare_digest(presented.digest, stored_digest)


def _base32(value: bytes) -> str:
    return base64.b32encode(value).decode("ascii").rstrip("=").lower()
