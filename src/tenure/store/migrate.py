"""Numbered SQL files, each applied once, in order, in its own transaction.

A file is `migrations/NNNN_name.sql`. What was applied is kept with its checksum: a changed file is refused. At start
every process compares the database's version with its own (`check_schema`) and refuses an older or newer one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import psycopg

from tenure.core.errors import MigrationError, SchemaMismatchError
from tenure.store.database import Connection, DatabaseSettings, connect
from tenure.store.statements import statement

ADVISORY_LOCK = 0x74656E757265  # "tenure" in ASCII
LOCK_TIMEOUT = "5s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file. `checksum` is the SHA-256 of its bytes, hex."""

    version: int
    name: str
    sql: bytes
    checksum: str


def load_migrations() -> tuple[Migration, ...]:
    """All migrations that ship with this version, in order, numbered without gaps from 1."""
    paths = sorted(
        (path for path in files("tenure.store").joinpath("migrations").iterdir() if path.name.endswith(".sql")),
        key=lambda path: path.name,
    )
    found = []
    for path in paths:
        number, _, name = path.name.removesuffix(".sql").partition("_")
        sql = path.read_bytes()
        checksum = hashlib.sha256(sql).hexdigest()
        found.append(Migration(version=int(number), name=name, sql=sql, checksum=checksum))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationError("migration files are not numbered 1, 2, 3 without gaps")
    return tuple(found)


async def migrate(settings: DatabaseSettings) -> list[Migration]:
    """Apply what is missing; returns what was applied. Two migrators at once: the second waits, then finds nothing."""
    connection = await connect(settings, direct=True, name="tenure migrate")
    try:
        await connection.execute(statement("schema/lock"), {"lock": ADVISORY_LOCK})
        await connection.execute(statement("schema/limits"), {"lock_timeout": LOCK_TIMEOUT})
        await connection.execute(statement("schema/prepare"))
        missing = _missing(load_migrations(), await _applied(connection))
        for migration in missing:
            await _apply(connection, migration)
    except psycopg.Error as error:
        raise MigrationError(str(error).strip()) from error
    else:
        return missing
    finally:
        await connection.close()


async def check_schema(connection: Connection) -> None:
    """Refuse to work on a database that is older or newer than this program."""
    ours = len(load_migrations())
    exists = await (await connection.execute(statement("schema/exists"))).fetchone()
    theirs = 0
    if exists and exists[0]:
        row = await (await connection.execute(statement("schema/version"))).fetchone()
        theirs = row[0] if row else 0
    if theirs < ours:
        raise SchemaMismatchError(
            f"the database has schema version {theirs}, this Tenure needs {ours}: run `tenure migrate`"
        )
    if theirs > ours:
        raise SchemaMismatchError(
            f"the database has schema version {theirs}, this Tenure knows {ours}: upgrade this Tenure"
        )


async def _applied(connection: Connection) -> dict[int, tuple[str, str]]:
    cursor = await connection.execute(statement("schema/applied"))
    return {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}


def _missing(known: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> list[Migration]:
    newest = max(applied, default=0)
    if newest > len(known):
        raise MigrationError(f"the database has schema version {newest}, newer than this Tenure's {len(known)}")
    for migration in known:
        name, checksum = applied.get(migration.version, (migration.name, migration.checksum))
        if checksum != migration.checksum:
            raise MigrationError(
                f"migration {migration.version} ({name}) was applied from a different file: another build of Tenure "
                "made this database. Use that build, or begin with an empty database or data directory"
            )
    return [migration for migration in known if migration.version not in applied]


async def _apply(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.sql)
        await connection.execute(
            statement("schema/record"),
            {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
        )
