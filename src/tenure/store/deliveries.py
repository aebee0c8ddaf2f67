"""Notifications of exports, as records; the sending itself is a job with the same id."""

from tenure.core.export import Delivery
from tenure.core.ids import JobId, TenantId
from tenure.store.database import Connection
from tenure.store.statements import statement


async def insert(
    connection: Connection, delivery_id: JobId, export_id: JobId, tenant_id: TenantId, delivery: Delivery
) -> None:
    """Record a notification to send."""
    parameters = {
        "delivery_id": delivery_id,
        "export_id": export_id,
        "tenant_id": tenant_id,
        "channel": delivery.channel,
        "url": delivery.url,
    }
    await connection.execute(statement("deliveries/insert"), parameters)


async def record(
    connection: Connection, tenant_id: TenantId, delivery_id: JobId, *, code: str, delivered: bool
) -> None:
    """Record how the newest attempt ended; `code` is "delivered" or an error's."""
    parameters = {"tenant_id": tenant_id, "delivery_id": delivery_id, "code": code, "delivered": delivered}
    await connection.execute(statement("deliveries/record"), parameters)
