"""Tenants and their settings."""

from dataclasses import dataclass
from datetime import datetime

from tenure.core.errors import NotFoundError
from tenure.core.ids import TenantId
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTenant:
    """A tenant's settings (JSON text) while its row is held, and the database's time under the lock."""

    settings: bytes
    now: datetime


async def ensure(connection: Connection, tenant_id: TenantId) -> None:
    """Make a tenant known; its settings stay as they are."""
    await connection.execute(statement("tenants/ensure"), {"tenant_id": tenant_id})


async def lock(connection: Connection, tenant_id: TenantId) -> LockedTenant:
    """Hold the tenant's row until the transaction ends."""
    cursor = await connection.execute(statement("tenants/lock"), {"tenant_id": tenant_id})
    row = await cursor.fetchone()
    if row is None:
        raise NotFoundError("tenant")
    return LockedTenant(settings=row[0], now=row[1])
