"""API keys: only digests are stored."""

from dataclasses import dataclass
from datetime import datetime

from tenure.core.ids import TenantId
from tenure.core.keys import NewKey, Principal, Scope
from tenure.store.database import Connection
from tenure.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrant:
    """What a new key is for. `tenant_id` None: an operator's key. `expires_at` None: never."""

    name: str
    tenant_id: TenantId | None
    scopes: frozenset[Scope]
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A valid key, as stored: compare the digest before trusting the principal."""

    principal: Principal
    digest: bytes


async def create(connection: Connection, key: NewKey, grant: KeyGrant) -> None:
    """Keep a new key's digest."""
    parameters = {
        "key_id": key.key_id,
        "tenant_id": grant.tenant_id,
        "name": grant.name,
        "secret_sha256": key.digest,
        "scopes": sorted(grant.scopes),
        "expires_at": grant.expires_at,
    }
    await connection.execute(statement("keys/create"), parameters)


async def find(connection: Connection, key_id: str) -> StoredKey | None:
    """A key that is neither revoked nor expired."""
    cursor = await connection.execute(statement("keys/find"), {"key_id": key_id})
    row = await cursor.fetchone()
    if row is None:
        return None
    tenant_id = None if row[1] is None else TenantId(row[1])
    scopes = frozenset(Scope(scope) for scope in row[3])
    return StoredKey(principal=Principal(key_id=row[0], tenant_id=tenant_id, scopes=scopes), digest=bytes(row[2]))
