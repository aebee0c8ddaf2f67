"""Downloads, for the audit."""

from dataclasses import dataclass

from tenure.core.ids import JobId, TenantId
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """Who fetched which file, and how many bytes were really sent."""

    tenant_id: TenantId
    export_id: JobId
    file: str
    requested_by: str
    bytes_sent: int
    complete: bool


async def record(connection: Connection, download: Download) -> None:
    """Write a download down."""
    parameters = {
        "tenant_id": download.tenant_id,
        "export_id": download.export_id,
        "file": download.file,
        "requested_by": download.requested_by,
        "bytes_sent": download.bytes_sent,
        "complete": download.complete,
    }
    await connection.execute(statement("downloads/record"), parameters)
