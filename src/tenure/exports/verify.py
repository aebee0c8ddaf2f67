"""Checks a downloaded package offline: `tenure verify PATH`.

Every file is read twice, in constant memory: once as bytes (size, SHA-256), once as what it says it is (rows, columns).
Reading on after a mismatch is deliberate: "99 rows where the manifest says 100" tells more than a wrong digest.
"""

import csv
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tenure.core.export import Compression
from tenure.core.manifest import MANIFEST_NAME, SUMS_NAME, Dialect, Manifest, ManifestFile
from tenure.exports.manifest import ManifestUnreadableError, checksums, decode_manifest

BLOCK_BYTES = 1024 * 1024
MANIFEST_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: the file's name and a plain sentence without it."""

    file: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was checked and found. `manifest_sha256` is the package's identity: compare it with the one Tenure shows."""

    manifest: Manifest | None
    manifest_sha256: str | None
    files: int
    rows: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings


def verify_package(
    path: Path,
    *,
    manifest_path: Path | None = None,
    manifest_sha256: str | None = None,
) -> VerifyReport:
    """Check a package's folder, or a single file of one against the manifest beside it.

    `manifest_path` says where the manifest lies otherwise. `manifest_sha256` is the identity it must have (lower-case
    hex); without it a manifest that was replaced together with its files cannot be told from a genuine one.
    """
    whole = path.is_dir()
    manifest_path = manifest_path or (path if whole else path.parent) / MANIFEST_NAME
    try:
        raw = _manifest_bytes(manifest_path)
        manifest = decode_manifest(raw)
    except ManifestUnreadableError as error:
        return _unreadable(Finding(file=manifest_path.name, problem=str(error)))
    identity = hashlib.sha256(raw).hexdigest()
    findings = list(_manifest_findings(manifest))
    if manifest_sha256 is not None and manifest_sha256.lower() != identity:
        problem = f"has SHA-256 {identity}, not {manifest_sha256}: it is not this package's manifest"
        findings.append(Finding(file=MANIFEST_NAME, problem=problem))
    if whole:
        findings.extend(_folder_findings(path, manifest, raw))
    checks = [_check_file(item, file, manifest) for item, file in _files(path, manifest)]
    if not whole and not checks:
        findings.append(Finding(file=path.name, problem="is not a file of this package"))
    findings.extend(finding for check in checks for finding in check.findings)
    return VerifyReport(
        manifest=manifest,
        manifest_sha256=identity,
        files=len(checks),
        rows=sum(check.rows for check in checks),
        bytes=sum(check.bytes for check in checks),
        findings=tuple(findings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    rows: int = 0
    bytes: int = 0
    findings: tuple[Finding, ...]


class _ContentError(Exception):
    """The file is not what its name and manifest say; the message is a plain clause."""


def _manifest_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MANIFEST_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise ManifestUnreadableError("is missing: there is nothing to check against") from error
    except OSError as error:
        raise ManifestUnreadableError(f"cannot be read: {error.strerror}") from error
    if len(raw) > MANIFEST_BYTES_MAX:
        raise ManifestUnreadableError("is too large for a manifest")
    return raw


def _unreadable(finding: Finding) -> VerifyReport:
    return VerifyReport(manifest=None, manifest_sha256=None, files=0, rows=0, bytes=0, findings=(finding,))


def _manifest_findings(manifest: Manifest) -> Iterator[Finding]:
    rows = sum(file.rows for file in manifest.files)
    size = sum(file.bytes for file in manifest.files)
    if manifest.rows != rows:
        yield Finding(file=MANIFEST_NAME, problem=f"says {manifest.rows} rows in all; its files add up to {rows}")
    if manifest.bytes != size:
        yield Finding(file=MANIFEST_NAME, problem=f"says {manifest.bytes} bytes in all; its files add up to {size}")
    if manifest.source_rows != rows:
        yield Finding(file=MANIFEST_NAME, problem=f"says the source held {manifest.source_rows} rows, not {rows}")
    if len({file.name for file in manifest.files}) != len(manifest.files):
        yield Finding(file=MANIFEST_NAME, problem="names a file twice")


def _folder_findings(folder: Path, manifest: Manifest, raw: bytes) -> Iterator[Finding]:
    belongs = {file.name for file in manifest.files} | {MANIFEST_NAME, SUMS_NAME}
    for name in sorted(item.name for item in folder.iterdir()):
        if name not in belongs:
            yield Finding(file=name, problem="does not belong to this package")
    for file in manifest.files:
        if not (folder / file.name).is_file():
            yield Finding(file=file.name, problem="is missing")
    sums = folder / SUMS_NAME
    # The list may be left out of a download: the manifest says all it says.
    expected = checksums(manifest, raw)
    if sums.is_file() and (sums.stat().st_size != len(expected) or sums.read_bytes() != expected):
        yield Finding(file=SUMS_NAME, problem="does not agree with the manifest: one of the two was changed")


def _files(path: Path, manifest: Manifest) -> Iterator[tuple[Path, ManifestFile]]:
    for file in manifest.files:
        item = path / file.name if path.is_dir() else path
        if item.name == file.name and item.is_file():
            yield item, file


def _check_file(path: Path, file: ManifestFile, manifest: Manifest) -> _Check:
    problems: list[str] = []
    size, digest = _fingerprint(path)
    if size != file.bytes:
        problems.append(f"holds {size} bytes where the manifest says {file.bytes}")
    if digest != file.sha256:
        problems.append(f"has SHA-256 {digest}, not {file.sha256}: its content was changed")
    rows = 0
    try:
        rows = _count_rows(path, file, manifest)
    except _ContentError as error:
        problems.append(str(error))
    else:
        if rows != file.rows:
            problems.append(f"holds {rows} rows where the manifest says {file.rows}")
    return _Check(
        rows=rows,
        bytes=size,
        findings=tuple(Finding(file=file.name, problem=problem) for problem in problems),
    )


def _fingerprint(path: Path) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


def _count_rows(path: Path, file: ManifestFile, manifest: Manifest) -> int:
    """Rows without the header, found by parsing the whole file. Raises _ContentError."""
    try:
        with _opened(path, manifest.compression) as raw:
            return _count_csv(raw, file, manifest.dialect)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _ContentError(f"is not a whole {manifest.compression} file: {error}") from error
    except UnicodeDecodeError as error:
        raise _ContentError(f"is not {manifest.dialect.encoding} text") from error
    except (LookupError, TypeError) as error:
        raise _ContentError("is written in a dialect that this version cannot read") from error


def _opened(path: Path, compression: str) -> BinaryIO:
    match compression:
        case Compression.NONE:
            return path.open("rb")
        case Compression.GZIP:
            return gzip.open(path, "rb")  # type: ignore[return-value]  # GzipFile reads like any binary file
        case _:
            raise _ContentError(f"is packed as {compression}, which this version cannot read")


def _count_csv(raw: BinaryIO, file: ManifestFile, dialect: Dialect) -> int:
    rows = 0
    with io.TextIOWrapper(raw, encoding=dialect.encoding, newline="") as text, _fields_of_any_size():
        reader = csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
        try:
            if dialect.header and tuple(next(reader, ())) != file.columns:
                raise _ContentError("has another header than the manifest's columns")
            for record in reader:
                # A single column's NULL is an empty line, which the parser gives as no field at all.
                if max(len(record), 1) != len(file.columns):
                    wrong = f"has {len(record)} fields in row {rows + 1} where there are {len(file.columns)} columns"
                    raise _ContentError(wrong)
                rows += 1
        except csv.Error as error:
            raise _ContentError(f"is not well-formed CSV after row {rows}: {error}") from error
    return rows


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    """The parser's limit (128 KiB) is global to the process, and PostgreSQL's fields may hold a gigabyte."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
