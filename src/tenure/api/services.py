"""What the HTTP surface needs from the rooms below. `wiring` builds one; tests build fakes."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from tenure.core import limits
from tenure.core.dataset import Catalogue
from tenure.core.export import ExportSpec, ExportView
from tenure.core.ids import JobId, TenantId
from tenure.core.keys import PresentedKey, Principal
from tenure.core.shares import FairnessReport
from tenure.core.tuning import LaneChanges, LaneSettings, LaneView, QueueChanges, QueueSettings, QueueView
from tenure.core.why import JobWhy
from tenure.exports.download import DownloadRecord, LinkKeys


class Admission(Protocol):
    """An admitted export. `created` is False when the identical request is running already."""

    @property
    def view(self) -> ExportView: ...

    @property
    def created(self) -> bool: ...


class Authenticate(Protocol):
    """Raises NotAuthenticatedError: unknown, wrong, expired or revoked."""

    def __call__(self, presented: PresentedKey, /) -> Awaitable[Principal]: ...


class Admit(Protocol):
    """Raises ExportActiveError, FormatCannotHoldError."""

    def __call__(self, tenant_id: TenantId, requested_by: str, spec: ExportSpec, /) -> Awaitable[Admission]: ...


class FindExport(Protocol):
    """Raises NotFoundError, alike for unknown exports and another tenant's."""

    def __call__(self, tenant_id: TenantId, export_id: JobId, /) -> Awaitable[ExportView]: ...


class ListExports(Protocol):
    """The tenant's exports, newest first; `before` leaves out that export and everything newer."""

    def __call__(
        self, tenant_id: TenantId, limit: int, before: JobId | None, /
    ) -> Awaitable[tuple[ExportView, ...]]: ...


class CancelExport(Protocol):
    """Asks for the end; the export as it stands then. Raises NotFoundError, and ConflictError once it succeeded."""

    def __call__(self, tenant_id: TenantId, export_id: JobId, cancelled_by: str, /) -> Awaitable[ExportView]: ...


class ReadObject(Protocol):
    """Blocks of `length` bytes from `start`. Blocking: it is called in a thread."""

    def __call__(self, key: str, start: int, length: int, /) -> Iterator[bytes]: ...


class OperatorDesk(Protocol):
    """What operators may ask and change. Raises NotFoundError for what is not there, InvalidInputError."""

    async def list_queues(self) -> tuple[QueueView, ...]: ...

    async def tune_queue(self, actor: str, queue: str, changes: QueueChanges, /) -> QueueSettings: ...

    async def list_lanes(self, queue: str, count: int, after: TenantId | None, /) -> tuple[LaneView, ...]: ...

    async def tune_lane(self, actor: str, queue: str, tenant_id: TenantId, changes: LaneChanges, /) -> LaneSettings: ...

    async def why_job(self, tenant_id: TenantId | None, job_id: JobId, /) -> JobWhy:
        """`tenant_id` None: any tenant's job."""
        ...

    async def fairness(self, queue: str | None, seconds: float, /) -> FairnessReport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything `create_app` needs."""

    catalogue: Catalogue
    link_keys: LinkKeys = field(repr=False)
    public_url: str
    """What stands before `/v1` in links given out, without a slash at the end."""
    link_seconds: int = limits.LINK_SECONDS_DEFAULT
    """How long signed links work when a request does not say."""
    now: Callable[[], datetime]
    """Wall clock, only used for signed links and Retry-After."""
    authenticate: Authenticate
    admit: Admit
    find_export: FindExport
    list_exports: ListExports
    cancel_export: CancelExport
    operator: OperatorDesk
    read_object: ReadObject
    record_download: Callable[[DownloadRecord], Awaitable[None]]
    check_ready: Callable[[], Awaitable[Mapping[str, bool]]]
    """What readiness depends on, by name, and whether each is well."""
