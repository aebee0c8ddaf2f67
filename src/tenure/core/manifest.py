"""The signed list of a package's files: the commit point of an export.

The manifest is written last, as canonical JSON (RFC 8785); the SHA-256 of its bytes is the package's identity.
"""

from dataclasses import dataclass

MANIFEST_VERSION = 1
MANIFEST_NAME = "manifest.json"
SUMS_NAME = "SHA256SUMS"
"""What `sha256sum -c` reads: every file of the package, the manifest included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How to read the package's CSV files (RFC 4180, save for the line end)."""

    delimiter: str = ","
    header: bool = True
    """The first line of every file holds the column names."""
    encoding: str = "utf-8"
    line_terminator: str = "\n"
    quote: str = '"'
    """Encloses a field; doubled inside one."""
    null: str = ""
    """An *unquoted* field of this text is NULL; quoted it is the text itself, so the empty string is `""`."""
    values: str = "postgresql"
    """Who renders values as text: `postgresql` is that server's own output in UTC, ISO dates, ISO 8601 intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One file: name inside the package, size in bytes, rows without the header, lower-case hex SHA-256."""

    name: str
    dataset: str
    media_type: str
    rows: int
    bytes: int
    sha256: str
    columns: tuple[str, ...]
    """Columns in file order."""
    column_types: tuple[str, ...]
    """The source's own type names, in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything needed to check a package without Tenure."""

    export_id: str
    tenant_id: str
    requested_by: str
    cutoff: str
    """RFC 3339, UTC, microseconds."""
    consistency: str
    format: str
    compression: str
    dialect: Dialect
    settings_digest: str
    """Lower-case hex SHA-256 of the tenant's settings as canonical JSON."""
    files: tuple[ManifestFile, ...]
    rows: int
    bytes: int
    source_rows: int
    """Rows the source counted in the same view, independently of the files."""
    software: str
    manifest_version: int = MANIFEST_VERSION
