"""Exports and their packages, as records."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from psycopg.rows import TupleRow

from tenure.core.export import (
    STATUS_OF_STATE,
    DeliveryView,
    ExportFailure,
    ExportOrder,
    ExportProgress,
    ExportStatus,
    ExportView,
    Package,
    PackageFile,
)
from tenure.core.ids import JobId, TenantId
from tenure.core.lifecycle import JobState
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledExport:
    """An export that has just ended: what was ordered, and the database's time of the end."""

    order: ExportOrder
    finished_at: datetime


async def insert(connection: Connection, export_id: JobId, order: ExportOrder, fingerprint: bytes) -> bool:
    """Record an admitted export. False: the tenant's one slot is taken."""
    parameters = {
        "export_id": export_id,
        "tenant_id": order.tenant_id,
        "requested_by": order.requested_by,
        "export_order": msgspec.json.encode(order).decode(),
        "fingerprint": fingerprint,
        "cutoff": order.cutoff,
    }
    cursor = await connection.execute(statement("exports/insert"), parameters)
    return cursor.rowcount == 1


async def unfinished(connection: Connection, tenant_id: TenantId) -> tuple[JobId, bytes] | None:
    """The export that holds the tenant's slot, and the fingerprint of its request."""
    cursor = await connection.execute(statement("exports/unfinished"), {"tenant_id": tenant_id})
    row = await cursor.fetchone()
    return None if row is None else (JobId(row[0]), bytes(row[1]))


async def settle(
    connection: Connection,
    tenant_id: TenantId,
    export_id: JobId,
    status: ExportStatus,
    failure: ExportFailure | None = None,
) -> SettledExport | None:
    """Record how an export ended. None: it had ended before, and stays as it was."""
    parameters = {
        "export_id": export_id,
        "tenant_id": tenant_id,
        "outcome": status,
        "failure_code": failure and failure.code,
        "failure_summary": failure and failure.summary,
        "failure_phase": failure and failure.phase,
    }
    cursor = await connection.execute(statement("exports/settle"), parameters)
    row = await cursor.fetchone()
    if row is None:
        return None
    return SettledExport(order=msgspec.json.decode(row[0], type=ExportOrder), finished_at=row[1])


async def publish(
    connection: Connection, tenant_id: TenantId, export_id: JobId, package: Package, settled: SettledExport
) -> datetime:
    """Make the package visible; returns when it expires."""
    parameters = {
        "export_id": export_id,
        "tenant_id": tenant_id,
        "manifest_key": package.manifest_key,
        "manifest_sha256": package.manifest_sha256,
        "manifest_bytes": package.manifest_bytes,
        "rows": package.rows,
        "bytes": package.bytes,
        "files": msgspec.json.encode(package.files).decode(),
        "published_at": settled.finished_at,
        "package_days": settled.order.settings.package_days,
    }
    cursor = await connection.execute(statement("packages/publish"), parameters)
    row = await cursor.fetchone()
    if row is None:
        raise AssertionError("an insert that returns a row returned none")
    expires_at: datetime = row[0]
    return expires_at


async def find(connection: Connection, tenant_id: TenantId, export_id: JobId) -> ExportView | None:
    """One export of a tenant; None: unknown or another tenant's."""
    cursor = await connection.execute(statement("exports/find"), {"tenant_id": tenant_id, "export_id": export_id})
    row = await cursor.fetchone()
    return None if row is None else _view(row)


async def list_newest(
    connection: Connection, tenant_id: TenantId, count: int, before: JobId | None = None
) -> Sequence[ExportView]:
    """A tenant's exports, newest first; `before` is the last id of the page before."""
    parameters = {"tenant_id": tenant_id, "count": count, "before": before}
    cursor = await connection.execute(statement("exports/list"), parameters)
    return [_view(row) for row in await cursor.fetchall()]


async def expired(connection: Connection, count: int) -> list[tuple[JobId, str]]:
    """Packages past their time whose objects are still there: export id and manifest key."""
    cursor = await connection.execute(statement("packages/expired"), {"count": count})
    return [(JobId(row[0]), str(row[1])) for row in await cursor.fetchall()]


async def mark_gone(connection: Connection, export_id: JobId) -> None:
    """The package's objects were deleted."""
    await connection.execute(statement("packages/mark_gone"), {"export_id": export_id})


def _view(row: TupleRow) -> ExportView:
    order = msgspec.json.decode(row[3], type=ExportOrder)
    state = JobState(row[11]) if row[11] is not None else None
    status = _status(outcome=row[5], state=state, gone=row[27])
    return ExportView(
        id=JobId(row[0]),
        tenant_id=TenantId(row[1]),
        requested_by=row[2],
        spec=order.spec,
        status=status,
        attempt=row[12],
        cutoff=row[4],
        created_at=row[9],
        finished_at=row[10],
        expires_at=row[26],
        next_retry_at=row[13] if state is JobState.RETRY_WAIT else None,
        progress=_progress(row) if status is ExportStatus.RUNNING else None,
        failure=ExportFailure(code=row[6], summary=row[7], phase=row[8]) if row[6] is not None else None,
        package=_package(row) if row[20] is not None else None,
        cancel_requested=row[14],
        deliveries=_deliveries(row[28]),
    )


def _status(*, outcome: str | None, state: JobState | None, gone: bool | None) -> ExportStatus:
    """Until it has ended, an export stands where its job stands; afterwards its own record says it all."""
    if outcome is not None:
        return ExportStatus.EXPIRED if gone else ExportStatus(outcome)
    if state is None:
        raise AssertionError("an unfinished export without its job")
    return STATUS_OF_STATE[state]


def _progress(row: TupleRow) -> ExportProgress | None:
    if row[16] is None or row[19] != row[12]:  # none yet, or an earlier attempt's
        return None
    return ExportProgress(phase=row[15] or "", rows_done=row[16], rows_expected=row[17], bytes_done=row[18])


def _package(row: TupleRow) -> Package:
    return Package(
        manifest_key=row[20],
        manifest_sha256=row[21],
        manifest_bytes=row[22],
        rows=row[23],
        bytes=row[24],
        files=msgspec.json.decode(row[25], type=tuple[PackageFile, ...]),
    )


def _deliveries(document: Any) -> tuple[DeliveryView, ...]:
    return () if document is None else msgspec.json.decode(document, type=tuple[DeliveryView, ...])
