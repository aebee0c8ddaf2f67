"""Migrations: once each, whole or not at all, and never on a database of another version."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest

from tenure.core.errors import MigrationError, SchemaMismatchError
from tenure.store import migrate as migrations
from tenure.store.database import DatabaseSettings, connect
from tenure.store.migrate import ADVISORY_LOCK, Migration, check_schema, load_migrations, migrate

KNOWN = load_migrations()


@pytest.fixture
def empty(empty_database_url):
    return DatabaseSettings(url=empty_database_url)


async def test_an_empty_database_gets_every_migration_and_a_second_run_finds_nothing(empty):
    first, second = await migrate(empty), await migrate(empty)

    assert list(KNOWN) == first
    assert [] == second
    assert [(number, name) for number, name, _ in await _applied(empty)] == [(m.version, m.name) for m in KNOWN]


async def test_of_two_migrators_at_once_one_does_the_work(empty):
    answers = await asyncio.gather(migrate(empty), migrate(empty), migrate(empty))

    assert sorted([[], [], list(KNOWN)], key=len) == sorted(answers, key=len)


async def test_a_migrator_waits_for_another_one(empty):
    async with _connection(empty) as holder, _connection(empty) as observer:
        await holder.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        waiting = asyncio.create_task(migrate(empty))
        async with asyncio.timeout(20):
            while not await _advisory_waiters(observer):  # noqa: ASYNC110  the database alone knows
                await asyncio.sleep(0.005)
        before = waiting.done()
        await holder.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])

        assert not before
        assert list(KNOWN) == await waiting


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(empty, monkeypatch):
    await migrate(empty)
    changed = (replace(KNOWN[0], checksum="0" * 64), *KNOWN[1:])
    monkeypatch.setattr(migrations, "load_migrations", lambda: changed)

    with pytest.raises(MigrationError, match=r"migration 1 \(foundation\) was applied from a different file"):
        await migrate(empty)


async def test_a_newer_database_is_refused(empty):
    await migrate(empty)
    await _pretend_version(empty, len(KNOWN) + 1)

    with pytest.raises(MigrationError, match=rf"version {len(KNOWN) + 1}, newer than this Tenure's {len(KNOWN)}"):
        await migrate(empty)


async def test_a_migration_that_fails_leaves_nothing_behind_and_can_be_tried_again(empty, monkeypatch):
    broken = Migration(
        version=len(KNOWN) + 1, name="broken", sql=b"CREATE TABLE tenure.half (); SELECT 1 / 0", checksum="b" * 64
    )
    mended = replace(broken, sql=b"CREATE TABLE tenure.half ()", checksum="c" * 64)
    monkeypatch.setattr(migrations, "load_migrations", lambda: (*KNOWN, broken))
    with pytest.raises(MigrationError, match="division by zero"):
        await migrate(empty)
    applied = [number for number, _, _ in await _applied(empty)]
    monkeypatch.setattr(migrations, "load_migrations", lambda: (*KNOWN, mended))

    assert [migration.version for migration in KNOWN] == applied
    assert [mended] == await migrate(empty)


async def test_a_migration_that_cannot_get_its_lock_gives_up_instead_of_queueing_everybody(empty, monkeypatch):
    await migrate(empty)
    blocked = Migration(version=len(KNOWN) + 1, name="blocked", sql=b"LOCK TABLE tenure.jobs", checksum="d" * 64)
    monkeypatch.setattr(migrations, "load_migrations", lambda: (*KNOWN, blocked))
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "50ms")
    async with _connection(empty) as holder, holder.transaction():
        await holder.execute("LOCK TABLE tenure.jobs IN ACCESS SHARE MODE")

        with pytest.raises(MigrationError, match="lock timeout"):
            await migrate(empty)


async def test_a_program_refuses_a_database_that_is_empty_or_older(empty):
    async with _connection(empty) as connection:
        with pytest.raises(
            SchemaMismatchError, match=r"has schema version 0, this Tenure needs \d+: run `tenure migrate`"
        ):
            await check_schema(connection)


async def test_a_program_refuses_a_database_that_is_newer(empty):
    await migrate(empty)
    await _pretend_version(empty, 99)
    async with _connection(empty) as connection:
        with pytest.raises(SchemaMismatchError, match=r"has schema version 99, this Tenure knows \d+: upgrade"):
            await check_schema(connection)


async def test_a_program_accepts_its_own_version(empty):
    await migrate(empty)
    async with _connection(empty) as connection:
        await check_schema(connection)


async def test_months_that_already_have_runs_do_not_stop_the_months_after_them(empty):
    await migrate(empty)
    async with _connection(empty) as connection:
        months = await _partitions(connection)
        await connection.execute(f"DROP TABLE tenure.{months[0]}")
        await connection.execute(
            "INSERT INTO tenure.runs "
            "(job_id, attempt, tenant_id, queue, kind, queued_at, claimed_at, finished_at, outcome) "
            "SELECT gen_random_uuid(), 1, 'acme', 'test', 'work', now, now, now, 'succeeded'"
            " FROM clock_timestamp() AS now"
        )
        made = await (await connection.execute("SELECT tenure.create_run_partitions(4)")).fetchone()

        assert (2,) == made
        assert [*months[1:], *(await _partitions(connection))[-2:]] == await _partitions(connection)


async def test_making_partitions_twice_makes_them_once(empty):
    await migrate(empty)
    async with _connection(empty) as connection:
        made = await (await connection.execute("SELECT tenure.create_run_partitions(2)")).fetchone()

        assert (0,) == made
        assert 3 == len(await _partitions(connection))


@asynccontextmanager
async def _connection(settings):
    connection = await connect(settings)
    try:
        yield connection
    finally:
        await connection.close()


async def _applied(settings):
    async with _connection(settings) as connection:
        cursor = await connection.execute("SELECT version, name, checksum FROM tenure.schema_migrations ORDER BY 1")
        return await cursor.fetchall()


async def _pretend_version(settings, version):
    async with _connection(settings) as connection:
        await connection.execute("INSERT INTO tenure.schema_migrations VALUES (%s, 'future', 'f')", [version])


async def _advisory_waiters(connection):
    cursor = await connection.execute("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    return await cursor.fetchall()


async def _partitions(connection: psycopg.AsyncConnection):
    cursor = await connection.execute(
        "SELECT relname FROM pg_class WHERE relname ~ '^runs_\\d{4}_\\d\\d$' AND relkind = 'r' ORDER BY 1"
    )
    return [row[0] for row in await cursor.fetchall()]
