"""Rings: PostgreSQL notifications that carry the name of a queue."""

import asyncio
from collections.abc import AsyncIterator, Callable

import psycopg

from tenure.core.errors import DatabaseUnavailableError
from tenure.store.database import Connection
from tenure.store.statements import statement

PROBE_SECONDS = 5.0


async def ring(connection: Connection, queue: str) -> None:
    """Wake the queue's workers when this transaction commits. Equal rings of one transaction are sent once."""
    await connection.execute(statement("doorbells/ring"), {"queue": queue})


async def listen(
    connection: Connection, *, on_listening: Callable[[], None], quiet_seconds: float
) -> AsyncIterator[str]:
    """Names of the queues rung for. Raises `DatabaseUnavailableError` once the connection is lost or deaf."""
    try:
        await connection.execute(statement("doorbells/listen"))
        on_listening()
        while True:
            async for notice in connection.notifies(timeout=quiet_seconds):
                yield notice.payload
            async with asyncio.timeout(PROBE_SECONDS):
                await connection.execute(statement("doorbells/probe"))
    except (psycopg.Error, TimeoutError) as error:
        raise DatabaseUnavailableError(str(error).strip() or "it does not answer") from error
