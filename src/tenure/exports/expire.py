"""Delete what is past its time. The record stays: status, counts and the manifest's digest are kept."""

import asyncio

from tenure.objects.port import ObjectStore
from tenure.store import exports
from tenure.store.database import Database

EXPIRE_COUNT_MAX = 20


async def expire_packages(database: Database, objects: ObjectStore) -> int:
    """Delete the objects of expired packages, a bounded batch at a time; number of packages deleted.

    Objects first, then the mark: a crash in between deletes them again, which changes nothing. Downloads refuse by
    the expiry itself, so nobody is handed a half-deleted package.
    """
    async with database.connection() as connection:
        expired = await exports.expired(connection, EXPIRE_COUNT_MAX)
    for export_id, manifest_key in expired:
        prefix = manifest_key.rpartition("/")[0]
        await asyncio.to_thread(objects.delete_prefix, prefix)
        async with database.transaction() as connection:
            await exports.mark_gone(connection, export_id)
    return len(expired)
