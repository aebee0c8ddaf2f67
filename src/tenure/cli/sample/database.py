"""The sample product's database: made and filled once, recognised ever after.

It is one transaction: a fill that was interrupted leaves nothing. What the rows are made from has a fingerprint, kept
beside them, so that another version of Tenure replaces its own older sample, and nothing else ever.
"""

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import click
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.core.ids import TenantId

DATABASE = "product"
READER = "tenure_reader"
BIG_TENANT = TenantId("northwind-clinic")
"""The tenant with more than 300,000 events; an account's id is its id as a tenant."""
SAMPLE_CONFIG = Path(str(resources.files(__package__).joinpath("sample.toml")))
"""The sample's tenure.toml as installed. It takes the source's address from PRODUCT_DATABASE_URL, and it lies among
Tenure's own code: give a `data_dir` with it."""
TABLES = ("accounts", "members", "orders", "events")
SCRIPTS = ("schema.sql", "fill.sql", "keys.sql")
MARK = """
CREATE TABLE app.sample AS
SELECT {}::text AS fingerprint, jsonb_build_object(
    'accounts', (SELECT count(*) FROM app.accounts), 'members', (SELECT count(*) FROM app.members),
    'orders', (SELECT count(*) FROM app.orders), 'events', (SELECT count(*) FROM app.events)) AS tables
"""
"""Written last: where it is, everything is."""
ONE_AT_A_TIME = 7_308_602_910
"""Advisory lock on the server, so that two processes do not make the sample at once."""

_SETTINGS = "-c client_encoding=UTF8 -c TimeZone=UTC -c standard_conforming_strings=on -c client_min_messages=warning"


class SampleError(click.ClickException):
    """The sample cannot be made here without touching what is not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFacts:
    """What the sample holds, and how to reach it."""

    reader_url: str = field(repr=False)
    """For exports to read from: the role may only read, and sees one tenant at a time."""
    owner_url: str = field(repr=False)
    """For checking against: the superuser sees everything."""
    tables: dict[str, int]
    """Table of schema `app` -> its rows."""
    tenants: int
    filled: bool
    """This very call made it."""
    seconds: float
    """How long the call took."""
    big_tenant: TenantId = BIG_TENANT

    @property
    def rows(self) -> int:
        return sum(self.tables.values())


def ensure_sample(server_url: str, *, database: str = DATABASE) -> SampleFacts:
    """Make the sample unless it is there. `server_url` is a superuser's, of any other database on the server.

    Raises SampleError when a database of that name holds something else.
    """
    started = time.monotonic()
    owner_url = make_conninfo(server_url, dbname=database)
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [ONE_AT_A_TIME])
        _ensure_reader(server, server_url)
        if server.execute("SELECT FROM pg_database WHERE datname = %s", [database]).rowcount == 0:
            server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(database)))
        with psycopg.connect(owner_url, options=_SETTINGS) as product:
            filled = not _is_current(product, database)
            if filled:
                _fill(product)
            tables = _tables(product)
    return SampleFacts(
        reader_url=_reader_url(server_url, database),
        owner_url=owner_url,
        tables=tables,
        tenants=tables["accounts"],
        filled=filled,
        seconds=time.monotonic() - started,
    )


def _reader_url(server_url: str, database: str) -> str:
    given = conninfo_to_dict(server_url)
    host, port = quote(str(given.get("host") or "127.0.0.1"), safe=""), given.get("port") or 5432
    return f"postgresql://{READER}:{_reader_password(server_url)}@{host}:{port}/{database}"


def _ensure_reader(server: psycopg.Connection, server_url: str) -> None:
    """The role belongs to the server, not to one database, so it may be there without the sample."""
    exists = server.execute("SELECT FROM pg_roles WHERE rolname = %s", [READER]).rowcount
    change = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}" if exists else "CREATE ROLE {} LOGIN PASSWORD {}")
    server.execute(change.format(sql.Identifier(READER), sql.Literal(_reader_password(server_url))))


def _reader_password(server_url: str) -> str:
    """Follows from the superuser's, so that it is secret and need not be kept anywhere."""
    secret = str(conninfo_to_dict(server_url).get("password") or "")
    return hmac.new(secret.encode(), READER.encode(), hashlib.sha256).hexdigest()


def _is_current(product: psycopg.Connection, database: str) -> bool:
    """Whether this version's rows are there. Raises SampleError when the schema is not one of ours."""
    marked = product.execute("SELECT to_regclass('app.sample') IS NOT NULL").fetchone() == (True,)
    if marked:
        return product.execute("SELECT fingerprint FROM app.sample").fetchone() == (_fingerprint(),)
    taken = product.execute("SELECT FROM pg_namespace WHERE nspname = 'app'").rowcount
    if taken:
        raise SampleError(f'the database "{database}" has a schema "app" that is not the sample; use another server')
    return False


def _fill(product: psycopg.Connection) -> None:
    product.execute("DROP SCHEMA IF EXISTS app CASCADE")
    for name in SCRIPTS:
        product.execute(_script(name).encode())
    product.execute(sql.SQL(MARK).format(_fingerprint()))
    product.commit()


def _tables(product: psycopg.Connection) -> dict[str, int]:
    row = product.execute("SELECT tables FROM app.sample").fetchone()
    counts: dict[str, int] = row[0] if row else {}
    return {name: counts[name] for name in TABLES}


def _fingerprint() -> str:
    """Of everything the rows follow from."""
    return hashlib.sha256("".join(map(_script, SCRIPTS)).encode()).hexdigest()


def _script(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
