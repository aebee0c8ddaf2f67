"""Connections to Tenure's own database: a pool, short transactions, and deadlines that hold.

A socket option is not a deadline: a peer that is stalled but acknowledges is never timed out by TCP. So every
transaction runs under a time limit of its own, after which the connection is closed and not reused.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tenure.core.errors import DatabaseUnavailableError
from tenure.store.statements import statement

Connection = AsyncConnection[TupleRow]

CONNECT_TIMEOUT_SECONDS = 5
TRANSACTION_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """How to reach Tenure's database.

    `direct_url` bypasses a pooler such as PgBouncer and is needed for LISTEN and advisory locks; None: `url` is direct.
    `prepared_statements` must be False behind a pooler in transaction mode.
    """

    url: str
    direct_url: str | None = None
    prepared_statements: bool = True
    pool_size_max: int = 8

    def __repr__(self) -> str:
        return "DatabaseSettings(url=<secret>)"


async def connect(settings: DatabaseSettings, *, direct: bool = False, name: str = "tenure") -> Connection:
    """Open one connection outside the pool, in autocommit mode, with an empty search_path."""
    url = (settings.direct_url or settings.url) if direct else settings.url
    try:
        connection = await AsyncConnection.connect(
            _conninfo(url, name), autocommit=True, prepare_threshold=_prepare_threshold(settings)
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnavailableError(_first_line(error)) from error
    await configure(connection)
    return connection


async def configure(connection: Connection) -> None:
    """JSON stays bytes: rows of it pass through without being parsed and built again. Plans are made once."""
    set_json_loads(_keep_bytes, connection)
    await connection.execute(statement("database/configure"))


class Database:
    """A pool of connections. Use `transaction()` for writes; nothing here holds one longer than a statement needs."""

    def __init__(self, settings: DatabaseSettings, *, name: str = "tenure") -> None:
        self.settings = settings
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            _conninfo(settings.url, name),
            min_size=1,
            max_size=settings.pool_size_max,
            open=False,
            configure=configure,
            check=AsyncConnectionPool.check_connection,
            kwargs={"autocommit": True, "prepare_threshold": _prepare_threshold(settings)},
            timeout=CONNECT_TIMEOUT_SECONDS * 2,
        )

    async def open(self) -> None:
        """Connect, or say why not."""
        await (await connect(self.settings)).close()
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self, *, seconds: float = TRANSACTION_SECONDS) -> AsyncIterator[Connection]:
        """A pooled connection in autocommit mode, for at most `seconds`."""
        try:
            async with self._pool.connection() as connection:
                try:
                    async with asyncio.timeout(seconds):
                        yield connection
                except BaseException as error:
                    if isinstance(error, TimeoutError | asyncio.CancelledError):
                        # Its state is unknown: the pool replaces it.
                        await connection.close()
                    raise
        except (PoolTimeout, psycopg.OperationalError, TimeoutError) as error:
            raise DatabaseUnavailableError(_first_line(error)) from error

    @asynccontextmanager
    async def transaction(self, *, seconds: float = TRANSACTION_SECONDS) -> AsyncIterator[Connection]:
        """One transaction, committed at the end and rolled back on any error."""
        async with self.connection(seconds=seconds) as connection, connection.transaction():
            yield connection


def _conninfo(url: str, name: str) -> str:
    return make_conninfo(
        url,
        application_name=name,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=15_000,
    )


def _prepare_threshold(settings: DatabaseSettings) -> int | None:
    return 5 if settings.prepared_statements else None


def _keep_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
