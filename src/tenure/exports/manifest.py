"""Builds and reads the manifest and the list of checksums.

The manifest holds nothing of the attempt that made it, neither a time nor a token: the same export over unchanged data
has the same identity.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import msgspec
import rfc8785

from tenure.core.export import ExportOrder, ExportSettings
from tenure.core.ids import JobId
from tenure.core.manifest import MANIFEST_NAME, MANIFEST_VERSION, Manifest, ManifestFile
from tenure.encoders.csv import media_type
from tenure.exports.plan import Plan, PlannedFile
from tenure.exports.write import Stored

INTEGER_MAX = 2**53 - 1
"""The largest integer that every JSON reader keeps (RFC 7493); RFC 8785 allows no larger one."""
SNAPSHOT_PER_SOURCE = "snapshot_per_source"
"""Several databases were read: one view in each, no view over all."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


class ManifestUnreadableError(ValueError):
    """The bytes are no manifest; the message says why, for people."""


def build_manifest(order: ExportOrder, export_id: JobId, plan: Plan, stored: Sequence[Stored]) -> Manifest:
    """`stored` is in the order of the plan's files."""
    files = tuple(_manifest_file(order, *pair) for pair in zip(plan.files, stored, strict=True))
    consistency = plan.files[0].request.dataset.consistency.value
    return Manifest(
        export_id=str(export_id),
        tenant_id=order.tenant_id,
        requested_by=order.requested_by,
        cutoff=_rfc3339(order.cutoff),
        consistency=consistency if plan.sources == 1 else SNAPSHOT_PER_SOURCE,
        format=order.spec.format.value,
        compression=order.spec.compression.value,
        dialect=plan.dialect,
        settings_digest=settings_digest(order.settings),
        files=files,
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        source_rows=plan.rows,
        software=f"tenure {version('tenure')}",
    )


def encode_manifest(manifest: Manifest) -> bytes:
    """Canonical JSON (RFC 8785); the SHA-256 of these bytes is the package's identity."""
    for count in (manifest.rows, manifest.bytes, manifest.source_rows):
        # Nine petabytes: no package gets there, and a wrong count must not become a rounded one.
        if not 0 <= count <= INTEGER_MAX:
            raise ValueError(f"a manifest cannot hold the number {count}: JSON keeps integers up to 2^53 - 1 only")
    return canonical_json(msgspec.to_builtins(manifest))


def canonical_json(value: object) -> bytes:
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # built-in types only, which rfc8785 checks itself


def decode_manifest(raw: bytes) -> Manifest:
    """Raises ManifestUnreadableError for anything that is no canonical manifest of a version known here."""
    try:
        document = json.loads(raw)
        canonical = canonical_json(document)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError) as error:
        raise ManifestUnreadableError("is not valid JSON") from error
    found = document.get("manifest_version") if isinstance(document, dict) else None
    if isinstance(found, int) and found > MANIFEST_VERSION:
        raise ManifestUnreadableError(f"was made by a newer Tenure (manifest version {found})")
    if canonical != raw:
        raise ManifestUnreadableError("is not in canonical form (RFC 8785): it was changed after it was made")
    try:
        manifest = msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        raise ManifestUnreadableError(f"is not a Tenure manifest: {error}") from error
    for file in manifest.files:
        if not _FILE_NAME.fullmatch(file.name):
            raise ManifestUnreadableError(f"names a file {file.name!r}, which no package can hold")
    return manifest


def checksums(manifest: Manifest, manifest_bytes: bytes) -> bytes:
    """Text that `sha256sum -c` reads: every file, then the manifest itself."""
    sums = [(file.sha256, file.name) for file in manifest.files]
    sums.append((hashlib.sha256(manifest_bytes).hexdigest(), MANIFEST_NAME))
    return "".join(f"{digest}  {name}\n" for digest, name in sums).encode()


def settings_digest(settings: ExportSettings) -> str:
    return hashlib.sha256(canonical_json(msgspec.to_builtins(settings))).hexdigest()


def _manifest_file(order: ExportOrder, planned: PlannedFile, stored: Stored) -> ManifestFile:
    return ManifestFile(
        name=planned.name,
        dataset=planned.request.dataset.name,
        media_type=media_type(order.spec.compression),
        rows=planned.rows,
        bytes=stored.bytes,
        sha256=stored.sha256,
        columns=tuple(column.name for column in planned.columns),
        column_types=tuple(column.type_name for column in planned.columns),
    )


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
