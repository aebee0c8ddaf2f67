"""The audit log: append-only."""

import msgspec

from tenure.core.ids import TenantId
from tenure.store.database import Connection
from tenure.store.statements import statement


async def append(
    connection: Connection,
    actor: str,
    action: str,
    subject: object,
    *,
    tenant_id: TenantId | None = None,
    **detail: object,
) -> None:
    """Write down who did what to which thing, in the transaction that does it. No secrets, no customer data."""
    parameters = {
        "actor": actor,
        "tenant_id": tenant_id,
        "action": action,
        "subject": str(subject),
        "detail": msgspec.json.encode(detail).decode(),
    }
    await connection.execute(statement("audit/append"), parameters)
