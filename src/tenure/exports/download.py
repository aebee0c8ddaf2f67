"""Who may fetch which file of a package: signed links for people without a key, and the file behind a name.

A link is a bearer token for one file of one export until one moment. It binds tenant, export, file, expiry, the reading
methods (GET and HEAD) and the key that signed it; nothing is stored, so revoking means removing the key or the package.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlencode
from uuid import UUID

from tenure.core import limits
from tenure.core.errors import GoneError, NotFoundError, RefusedError
from tenure.core.export import ExportStatus, ExportView, PackageFile
from tenure.core.ids import JobId, TenantId
from tenure.core.manifest import MANIFEST_NAME

LINK_SECRET_BYTES_MIN = 32
CLOCK_SKEW_SECONDS = 60
"""How far the clocks of two API servers may differ before a link with the longest life is refused."""
MANIFEST_MEDIA_TYPE = "application/json"

_KID = re.compile(r"[A-Za-z0-9._-]{1,32}", re.ASCII)
# One spelling only: '+1', '01', '1e9' and other scripts' digits are no expiry.
_EXPIRES = re.compile(r"[1-9][0-9]{0,10}", re.ASCII)
_LINK_FIELDS = frozenset({"tenant", "expires", "kid", "signature"})
# GET and HEAD form one class: both only read. Another class would need another word here.
_METHOD_CLASS = "read"


class LinkRefusedError(RefusedError):
    """The link's signature is not one of ours, or the link was changed."""

    code = "link_refused"
    title = "This link is not valid"
    what_to_do = "Open the link exactly as it was given, or ask for a new one."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKey:
    """A signing key. `kid` names it in links, so that older links outlive a rotation."""

    kid: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _KID.fullmatch(self.kid):
            raise ValueError("a link key's id must be 1 to 32 letters, digits, '.', '_' or '-'")
        if len(self.secret) < LINK_SECRET_BYTES_MIN:
            raise ValueError(f"a link key's secret must be at least {LINK_SECRET_BYTES_MIN} bytes")


LinkKeys = tuple[LinkKey, ...]
"""The key ring: the first signs, all verify."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkGrant:
    """What a verified link allows: reading one file."""

    tenant_id: TenantId
    export_id: JobId
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadFile:
    """A file ready to be read: `key` in the object store, size in bytes, lower-case hex SHA-256."""

    name: str
    key: str
    media_type: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRecord:
    """One download, for the audit: who took how much of which file, and whether all that was asked for arrived."""

    tenant_id: TenantId
    export_id: JobId
    file: str
    by: str
    """`key:<key id>` or `link`."""
    first_byte: int
    bytes_asked: int
    bytes_sent: int

    @property
    def complete(self) -> bool:
        return self.bytes_sent == self.bytes_asked


def sign_link(keys: LinkKeys, grant: LinkGrant, *, expires_at: datetime) -> str:
    """Path and query of a link that works until `expires_at`, in whole seconds; the public URL goes before it."""
    key = keys[0]
    expires = str(int(expires_at.timestamp()))
    query = {
        "tenant": grant.tenant_id,
        "expires": expires,
        "kid": key.kid,
        "signature": _signature(key, grant, expires),
    }
    return f"/v1/downloads/{grant.export_id}/{quote(grant.file, safe='')}?{urlencode(query)}"


def check_link(keys: LinkKeys, *, export_id: str, file: str, query: Mapping[str, str], now: datetime) -> LinkGrant:
    """What the link allows. `export_id` and `file` come from the path, `query` has each name once.

    Raises LinkRefusedError, alike for every flaw; GoneError when the link is genuine and its time is over.
    """
    key = next((key for key in keys if key.kid == query.get("kid")), None)
    expires = query.get("expires", "")
    if key is None or set(query) != _LINK_FIELDS or not _EXPIRES.fullmatch(expires):
        raise LinkRefusedError("this link is not valid")
    grant = LinkGrant(tenant_id=TenantId(query["tenant"]), export_id=_read_export_id(export_id), file=file)
    # The text is compared, not the decoded bytes: base64 has spare bits that would let two spellings pass.
    if not hmac.compare_digest(_as_bytes(_signature(key, grant, expires)), _as_bytes(query["signature"])):
        raise LinkRefusedError("this link is not valid")
    _check_expiry(int(expires), now)
    return grant


def link_expiry(view: ExportView, *, now: datetime) -> datetime:
    """When a link made now stops working: after the export's `link_seconds`, with its package at the latest.

    Rounded up to a tenth of that time (300 s at most), so that polling an export gives the same link, and so the same
    ETag, for a while.
    """
    step = max(1, min(300, view.spec.link_seconds // 10))
    wanted = -(-int(now.timestamp() + view.spec.link_seconds) // step) * step
    latest = int(now.timestamp()) + limits.LINK_SECONDS_MAX
    expiry = datetime.fromtimestamp(min(wanted, latest // step * step), tz=UTC)
    return min(expiry, view.expires_at) if view.expires_at else expiry


def find_file(view: ExportView, name: str, *, now: datetime) -> DownloadFile:
    """The published file of that name, the manifest included.

    Raises GoneError once the package is gone; NotFoundError for an unknown name or before publication.
    """
    if view.status is ExportStatus.EXPIRED or (view.expires_at is not None and view.expires_at <= now):
        raise GoneError("this package has expired; its record stays")
    if view.package is None or view.status is not ExportStatus.SUCCEEDED:
        raise NotFoundError("file")
    if name == MANIFEST_NAME:
        return DownloadFile(
            name=MANIFEST_NAME,
            key=view.package.manifest_key,
            media_type=MANIFEST_MEDIA_TYPE,
            bytes=view.package.manifest_bytes,
            sha256=view.package.manifest_sha256,
        )
    for file in view.package.files:
        if file.name == name:
            return _download_file(file)
    raise NotFoundError("file")


def _download_file(file: PackageFile) -> DownloadFile:
    return DownloadFile(name=file.name, key=file.key, media_type=file.media_type, bytes=file.bytes, sha256=file.sha256)


def _signature(key: LinkKey, grant: LinkGrant, expires: str) -> str:
    fields = (
        "tenure-link-v1",
        _METHOD_CLASS,
        key.kid,
        grant.tenant_id,
        str(grant.export_id),
        grant.file,
        expires,
    )
    # Each field is preceded by its length, so no two different links are the same message.
    message = b"".join(f"{len(part)}:".encode() + part for part in map(_as_bytes, fields))
    digest = hmac.new(key.secret, message, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def _check_expiry(expires: int, now: datetime) -> None:
    # Our own keys never sign longer than this: such a link came from a leaked or foreign use of the key.
    if expires > now.timestamp() + limits.LINK_SECONDS_MAX + CLOCK_SKEW_SECONDS:
        raise LinkRefusedError("this link is not valid")
    if expires <= now.timestamp():
        raise GoneError(f"this link expired at {datetime.fromtimestamp(expires, tz=UTC):%Y-%m-%dT%H:%M:%SZ}")


def _read_export_id(text: str) -> JobId:
    try:
        export_id = UUID(text)
    except ValueError:
        raise LinkRefusedError("this link is not valid") from None
    # UUID() accepts braces, urn: and upper case; only the spelling we gave out is ours.
    if str(export_id) != text:
        raise LinkRefusedError("this link is not valid")
    return JobId(export_id)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
