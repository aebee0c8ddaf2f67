"""The customer's request, the order a worker carries out, and what comes of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenure.core import limits
from tenure.core.dataset import Selection
from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.core.manifest import SUMS_NAME

EXPORT_KIND = "tenure.export"
"""Kind of the job that carries an export; the export's id is the job's id."""
EXPORT_QUEUE = "exports"


class ExportStatus(StrEnum):
    """What the customer sees."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It succeeded and its package is gone; the record stays."""


STATUS_OF_STATE: dict[JobState, ExportStatus] = {
    JobState.SCHEDULED: ExportStatus.QUEUED,
    JobState.QUEUED: ExportStatus.QUEUED,
    JobState.RUNNING: ExportStatus.RUNNING,
    JobState.RETRY_WAIT: ExportStatus.RUNNING,
    JobState.SUCCEEDED: ExportStatus.SUCCEEDED,
    JobState.DEAD: ExportStatus.FAILED,
    JobState.QUARANTINED: ExportStatus.FAILED,
    JobState.CANCELLED: ExportStatus.CANCELLED,
}
"""The status of an export follows from the state of the job that carries it."""


class Format(StrEnum):
    """File formats."""

    CSV = "csv"


class Compression(StrEnum):
    """How a file's bytes are packed."""

    NONE = "none"
    GZIP = "gzip"


class Channel(StrEnum):
    """How a customer learns of a finished export."""

    DOWNLOAD = "download"
    """Fetched through a signed link; nothing is sent."""
    WEBHOOK = "webhook"
    """A signed notification to an address of the customer's, for success and for failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One way the package reaches the customer."""

    channel: Channel = Channel.DOWNLOAD
    url: str | None = None
    """Where to; only for channels that send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """A tenant's settings, copied at admission: later changes do not touch an admitted export."""

    package_days: int = limits.PACKAGE_DAYS_DEFAULT
    csv_delimiter: str = ","
    csv_header: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSpec:
    """A request that passed the catalogue."""

    selections: tuple[Selection, ...]
    format: Format = Format.CSV
    compression: Compression = Compression.NONE
    deliveries: tuple[Delivery, ...] = (Delivery(),)
    link_seconds: int = limits.LINK_SECONDS_DEFAULT
    """How long each signed download link works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """What the export's job carries: everything a worker needs, fixed at admission."""

    tenant_id: TenantId
    requested_by: str
    spec: ExportSpec
    settings: ExportSettings
    cutoff: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """One file of a package as stored. `sha256` is lower-case hex of the stored bytes."""

    name: str
    key: str
    media_type: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What a finished export run hands over: stored, verified, not yet published."""

    manifest_key: str
    manifest_sha256: str
    manifest_bytes: int
    rows: int
    bytes: int
    files: tuple[PackageFile, ...]
    """Data files, then the checksums."""

    @property
    def only_file(self) -> PackageFile | None:
        """The data file of a package that has just one: what a customer means by "the download"."""
        data = [file for file in self.files if file.name != SUMS_NAME]
        return data[0] if len(data) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFailure:
    """Why an export failed, in the customer's words."""

    code: str
    summary: str
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportProgress:
    """How far a running export is."""

    phase: str
    rows_done: int
    rows_expected: int | None
    bytes_done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportView:
    """An export as its owner sees it."""

    id: JobId
    tenant_id: TenantId
    requested_by: str
    spec: ExportSpec
    status: ExportStatus
    attempt: int
    cutoff: datetime
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    next_retry_at: datetime | None
    progress: ExportProgress | None
    failure: ExportFailure | None
    package: Package | None
    cancel_requested: bool = False
    deliveries: tuple["DeliveryView", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """One notification of an export and how it stands; it never shows the receiver's secret."""

    id: JobId
    channel: Channel
    target: str
    state: JobState
    attempts: int
    last_code: str | None
    delivered_at: datetime | None
