"""LISTEN on a direct connection: one ring per batch and transaction, heard within milliseconds."""

import asyncio
from collections.abc import Callable, Collection

from tenure.core.errors import DatabaseUnavailableError
from tenure.engine.events import Fact, FactName, Observer
from tenure.store.database import DatabaseSettings, connect
from tenure.store.doorbells import listen

RECONNECT_SECONDS = 2.0
QUIET_SECONDS = 30.0
"""After this long without a ring the connection is asked whether it still lives: it may be connected but deaf."""


async def hear_rings(
    settings: DatabaseSettings, queues: Collection[str], ring: Callable[[], None], observe: Observer
) -> None:
    """Call `ring` for each wake-up of the queues, for ever; reconnects by itself."""
    while True:
        try:
            connection = await connect(settings, direct=True, name="tenure doorbell")
            try:
                # Something may have been rung while nobody listened.
                async for queue in listen(connection, on_listening=ring, quiet_seconds=QUIET_SECONDS):
                    if queue in queues:
                        ring()
            finally:
                await connection.close()
        except DatabaseUnavailableError as error:
            observe(Fact(name=FactName.DATABASE_AWAY, detail=f"doorbell: {error}"))
        await asyncio.sleep(RECONNECT_SECONDS)
