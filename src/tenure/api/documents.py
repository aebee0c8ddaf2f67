"""The JSON documents callers get, and how they are made from the values of the rooms below. OpenAPI comes from here."""

import math
from datetime import UTC, datetime

import msgspec

from tenure.api.services import Services
from tenure.core.dataset import Dataset
from tenure.core.export import (
    Compression,
    DeliveryView,
    ExportFailure,
    ExportProgress,
    ExportStatus,
    ExportView,
    Format,
    Package,
)
from tenure.core.manifest import MANIFEST_NAME
from tenure.exports.download import LinkGrant, link_expiry, sign_link

UNFINISHED = frozenset({ExportStatus.QUEUED, ExportStatus.RUNNING})
QUEUED_POLL_SECONDS = 5
RUNNING_POLL_SECONDS = 3
POLL_SECONDS_MAX = 60


class ProgressDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How far a running export is. `percent` is null while the number of rows is not known."""

    phase: str
    rows_done: int
    rows_expected: int | None
    bytes_done: int
    percent: int | None


class FileDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One file: rows without the header, size in bytes, hex SHA-256 of the bytes you download."""

    name: str
    rows: int
    bytes: int
    sha256: str
    media_type: str
    download_url: str | None


class FailureDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why an export failed."""

    code: str
    summary: str
    phase: str | None


class DeliveryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One notification and how it stands."""

    id: str
    channel: str
    target: str
    state: str
    attempts: int
    last_code: str | None
    delivered_at: datetime | None


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An export in a list."""

    job_id: str
    status: ExportStatus
    format: Format
    datasets: tuple[str, ...]
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    rows: int | None
    bytes: int | None
    links: dict[str, str]


class ExportDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An export. `download_url` is the one file's signed link, or the manifest's when there are several files."""

    job_id: str
    status: ExportStatus
    format: Format
    compression: Compression
    datasets: tuple[str, ...]
    requested_by: str
    progress: ProgressDocument | None
    attempt: int
    cancel_requested: bool
    cutoff: datetime
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    next_retry_at: datetime | None
    download_url: str | None
    manifest_url: str | None
    manifest_sha256: str | None
    rows: int | None
    bytes: int | None
    files: tuple[FileDocument, ...]
    failure: FailureDocument | None
    deliveries: tuple[DeliveryDocument, ...]
    links: dict[str, str]


class ExportList(msgspec.Struct, frozen=True, kw_only=True):
    """One page of exports, newest first. `next_cursor` is null on the last page."""

    items: tuple[ExportSummary, ...]
    next_cursor: str | None


class ColumnDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A column that can be exported."""

    name: str
    description: str


class DatasetDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that can be exported; `filters` maps columns to the operators they take."""

    name: str
    description: str
    columns: tuple[ColumnDocument, ...]
    filters: dict[str, list[str]]
    row_limit: int


class DatasetList(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a request can choose from."""

    datasets: tuple[DatasetDocument, ...]
    formats: tuple[Format, ...]
    compressions: tuple[Compression, ...]


class HealthDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`checks` names what readiness depends on, and whether it is well."""

    status: str
    checks: dict[str, bool] = {}


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One error of the taxonomy."""

    code: str
    title: str
    status: int
    retryable: bool
    what_to_do: str


class ErrorList(msgspec.Struct, frozen=True, kw_only=True):
    """The whole taxonomy."""

    errors: tuple[ErrorDocument, ...]


def export_document(view: ExportView, services: Services) -> ExportDocument:
    """The export with fresh signed links, as long as its package can be downloaded."""
    links = _signed_links(view, services)
    package = view.package
    only_file = package.only_file if package else None
    return ExportDocument(
        job_id=str(view.id),
        status=view.status,
        format=view.spec.format,
        compression=view.spec.compression,
        datasets=_dataset_names(view),
        requested_by=view.requested_by,
        progress=_progress(view.progress),
        attempt=view.attempt,
        cancel_requested=view.cancel_requested,
        cutoff=_utc(view.cutoff),
        created_at=_utc(view.created_at),
        finished_at=_utc_or_none(view.finished_at),
        expires_at=_utc_or_none(view.expires_at),
        next_retry_at=_utc_or_none(view.next_retry_at),
        download_url=links.get(only_file.name if only_file else MANIFEST_NAME),
        manifest_url=links.get(MANIFEST_NAME),
        manifest_sha256=package.manifest_sha256 if package else None,
        rows=package.rows if package else None,
        bytes=package.bytes if package else None,
        files=_files(package, links),
        failure=_failure(view.failure),
        deliveries=tuple(map(_delivery, view.deliveries)),
        links=_links(view),
    )


def export_summary(view: ExportView) -> ExportSummary:
    return ExportSummary(
        job_id=str(view.id),
        status=view.status,
        format=view.spec.format,
        datasets=_dataset_names(view),
        created_at=_utc(view.created_at),
        finished_at=_utc_or_none(view.finished_at),
        expires_at=_utc_or_none(view.expires_at),
        rows=view.package.rows if view.package else None,
        bytes=view.package.bytes if view.package else None,
        links=_links(view),
    )


def dataset_document(dataset: Dataset) -> DatasetDocument:
    """What a caller may know: never the source, the query or the tenant column."""
    return DatasetDocument(
        name=dataset.name,
        description=dataset.description,
        columns=tuple(ColumnDocument(name=item.name, description=item.description) for item in dataset.columns),
        filters={column: sorted(operators) for column, operators in dataset.filters.items()},
        row_limit=dataset.row_limit,
    )


def poll_seconds(view: ExportView, now: datetime) -> int | None:
    """When to ask again, in whole seconds; None once the export is finished."""
    if view.status not in UNFINISHED:
        return None
    if view.next_retry_at is not None:
        return min(POLL_SECONDS_MAX, max(1, math.ceil((view.next_retry_at - now).total_seconds())))
    return QUEUED_POLL_SECONDS if view.status is ExportStatus.QUEUED else RUNNING_POLL_SECONDS


def _signed_links(view: ExportView, services: Services) -> dict[str, str]:
    """File name -> link; empty before publication and after expiry."""
    now = services.now()
    expired = view.expires_at is not None and view.expires_at <= now
    if view.package is None or view.status is not ExportStatus.SUCCEEDED or expired:
        return {}
    expires_at = link_expiry(view, now=now)
    grants = [
        LinkGrant(tenant_id=view.tenant_id, export_id=view.id, file=name)
        for name in (MANIFEST_NAME, *(file.name for file in view.package.files))
    ]
    return {
        grant.file: services.public_url + sign_link(services.link_keys, grant, expires_at=expires_at)
        for grant in grants
    }


def _files(package: Package | None, links: dict[str, str]) -> tuple[FileDocument, ...]:
    return tuple(
        FileDocument(
            name=file.name,
            rows=file.rows,
            bytes=file.bytes,
            sha256=file.sha256,
            media_type=file.media_type,
            download_url=links.get(file.name),
        )
        for file in (package.files if package else ())
    )


def _links(view: ExportView) -> dict[str, str]:
    """Where to go next, for callers with a key."""
    own = f"/v1/exports/{view.id}"
    links = {"self": own}
    if view.status in UNFINISHED:
        links["cancel"] = f"{own}/cancel"
    if view.status is ExportStatus.SUCCEEDED:
        links["manifest"] = f"{own}/files/{MANIFEST_NAME}"
    return links


def _dataset_names(view: ExportView) -> tuple[str, ...]:
    return tuple(selection.dataset for selection in view.spec.selections)


def _progress(progress: ExportProgress | None) -> ProgressDocument | None:
    if progress is None:
        return None
    done, expected = progress.rows_done, progress.rows_expected
    return ProgressDocument(
        phase=progress.phase,
        rows_done=done,
        rows_expected=expected,
        bytes_done=progress.bytes_done,
        # Rounded down: 100 only when every row is done.
        percent=min(100, 100 * done // expected) if expected else None,
    )


def _failure(failure: ExportFailure | None) -> FailureDocument | None:
    return FailureDocument(code=failure.code, summary=failure.summary, phase=failure.phase) if failure else None


def _delivery(view: DeliveryView) -> DeliveryDocument:
    return DeliveryDocument(
        id=str(view.id),
        channel=view.channel,
        target=view.target,
        state=view.state,
        attempts=view.attempts,
        last_code=view.last_code,
        delivered_at=_utc_or_none(view.delivered_at),
    )


def _utc(moment: datetime) -> datetime:
    """The database session's zone is nobody's business: every time leaves as `...Z`."""
    return moment.astimezone(UTC)


def _utc_or_none(moment: datetime | None) -> datetime | None:
    return _utc(moment) if moment else None
