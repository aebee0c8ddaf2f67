"""Take an export in: one transaction copies the settings and the cutoff and enqueues the job that carries it."""

import hashlib
from dataclasses import dataclass, replace

import msgspec

from tenure.core.errors import ConflictError, ExportActiveError, NotFoundError
from tenure.core.export import (
    EXPORT_KIND,
    EXPORT_QUEUE,
    ExportOrder,
    ExportSettings,
    ExportSpec,
    ExportStatus,
    ExportView,
)
from tenure.core.ids import JobId, TenantId
from tenure.core.job import NewJob
from tenure.engine.cancel import cancel_job
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.engine.handlers import Kind, Kinds
from tenure.store import audit, exports, tenants
from tenure.store.database import Connection, Database


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedExport:
    """`created` is False when the identical request is running already: then that export is meant."""

    view: ExportView
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportDesk:
    """Takes in, shows and cancels exports. `defaults` are for tenants without settings of their own."""

    database: Database
    kinds: Kinds
    defaults: ExportSettings

    async def admit(self, tenant_id: TenantId, requested_by: str, spec: ExportSpec) -> AdmittedExport:
        """Admit a request that passed the catalogue. Raises `ExportActiveError`: the tenant's one slot is taken."""
        async with self.database.transaction() as connection:
            tenant = await tenants.lock(connection, tenant_id)
            fingerprint = hashlib.sha256(msgspec.json.encode(spec)).digest()
            holder = await exports.unfinished(connection, tenant_id)
            if holder is not None:
                held_by, held_fingerprint = holder
                if held_fingerprint != fingerprint:
                    raise ExportActiveError(held_by)
                return AdmittedExport(view=await _find(connection, tenant_id, held_by), created=False)
            order = ExportOrder(
                tenant_id=tenant_id,
                requested_by=requested_by,
                spec=spec,
                settings=_settings(tenant.settings, self.defaults),
                cutoff=tenant.now,
            )
            export_id = await self._insert(connection, order, fingerprint)
            return AdmittedExport(view=await _find(connection, tenant_id, export_id), created=True)

    async def find(self, tenant_id: TenantId, export_id: JobId) -> ExportView:
        """Raises `NotFoundError`, alike for unknown exports and another tenant's."""
        async with self.database.connection() as connection:
            return await _find(connection, tenant_id, export_id)

    async def list_newest(self, tenant_id: TenantId, count: int, before: JobId | None) -> tuple[ExportView, ...]:
        """The tenant's exports, newest first; `before` leaves out that export and everything newer."""
        async with self.database.connection() as connection:
            return tuple(await exports.list_newest(connection, tenant_id, count, before))

    async def cancel(self, tenant_id: TenantId, export_id: JobId, cancelled_by: str) -> ExportView:
        """Cancel, or ask a running export to stop; repeating it changes nothing. `ConflictError` once it has ended."""
        async with self.database.transaction() as connection:
            end = await cancel_job(connection, self.kinds, tenant_id, export_id)
            view = await _find(connection, tenant_id, export_id)
            if end is not None:
                await audit.append(connection, cancelled_by, "export.cancel", export_id, tenant_id=tenant_id)
            elif view.status is not ExportStatus.CANCELLED:
                raise ConflictError(f"export {export_id} has already {view.status}")
            return view

    async def _insert(self, connection: Connection, order: ExportOrder, fingerprint: bytes) -> JobId:
        export_id = new_job_id()
        if not await exports.insert(connection, export_id, order, fingerprint):
            # Cannot happen under the tenant's lock; the index is the guard that does not depend on it.
            raise ExportActiveError("unknown")
        await enqueue(connection, [_job(export_id, order, self.kinds[EXPORT_KIND])])
        await audit.append(connection, order.requested_by, "export.admit", export_id, tenant_id=order.tenant_id)
        return export_id


def _job(export_id: JobId, order: ExportOrder, kind: Kind) -> NewJob:
    return NewJob(
        id=export_id,
        tenant_id=order.tenant_id,
        queue=EXPORT_QUEUE,
        kind=EXPORT_KIND,
        args=msgspec.json.encode(order),
        max_attempts=kind.retry.max_attempts,
        max_crashes=kind.max_crashes,
        lease_seconds=kind.lease_seconds,
    )


def _settings(document: bytes, defaults: ExportSettings) -> ExportSettings:
    """The tenant's own settings over the defaults; the result is copied into the order."""
    own = msgspec.json.decode(document, type=dict[str, object])
    merged = {name: own.get(name, getattr(defaults, name)) for name in ExportSettings.__dataclass_fields__}
    return replace(defaults, **msgspec.to_builtins(msgspec.convert(merged, ExportSettings)))


async def _find(connection: Connection, tenant_id: TenantId, export_id: JobId) -> ExportView:
    view = await exports.find(connection, tenant_id, export_id)
    if view is None:
        raise NotFoundError("export")
    return view
