from datetime import UTC, datetime

import psycopg
import pytest

from tenure.cli.sample import BIG_TENANT, SAMPLE_CONFIG, SampleError, ensure_sample
from tenure.core.dataset import Selection
from tenure.sources.postgres import open_postgres
from tenure.sources.request import PostgresSettings, ReadRequest
from tenure.wiring.settings import Settings

LATER = datetime(2026, 6, 1, tzinfo=UTC)
"""Than anything in the sample."""
DATABASE = "sample_for_tests"
CONTENT = """
SELECT md5(string_agg(line, E'\\x01' ORDER BY line COLLATE "C")) FROM (
    SELECT 'account ' || row_to_json(a)::text FROM app.accounts AS a UNION ALL
    SELECT 'member ' || row_to_json(m)::text FROM app.members AS m UNION ALL
    SELECT 'order ' || row_to_json(o)::text FROM app.orders AS o UNION ALL
    SELECT 'event ' || row_to_json(e)::text FROM app.events AS e) AS lines (line)
"""
OLDER_SAMPLE = """
CREATE SCHEMA app;
CREATE TABLE app.orders (id text);
INSERT INTO app.orders VALUES ('of an older version');
CREATE TABLE app.sample AS SELECT 'older'::text AS fingerprint, '{}'::jsonb AS tables;
"""


@pytest.fixture(scope="module")
def sample(postgres_url):
    return ensure_sample(postgres_url, database=DATABASE)


@pytest.fixture
def product(sample):
    with psycopg.connect(sample.owner_url, options="-c TimeZone=UTC") as connection:
        yield connection


@pytest.fixture
def settings(sample, tmp_path):
    return Settings.load(SAMPLE_CONFIG, {"PRODUCT_DATABASE_URL": sample.reader_url}, {"data_dir": tmp_path})


def value(connection, query, *values):
    return connection.execute(query, values or None).fetchone()[0]


def run(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(query)


def test_two_fills_give_the_same_rows_and_an_older_sample_is_replaced(postgres_url, empty_database_url, product):
    run(empty_database_url, OLDER_SAMPLE)
    again = ensure_sample(postgres_url, database=psycopg.conninfo.conninfo_to_dict(empty_database_url)["dbname"])

    assert again.filled
    with psycopg.connect(again.owner_url, options="-c TimeZone=UTC") as other:
        assert value(other, CONTENT) == value(product, CONTENT)


def test_a_second_call_finds_the_sample_and_changes_nothing(postgres_url, sample, product):
    before = value(product, "SELECT xmin::text FROM app.sample")
    again = ensure_sample(postgres_url, database=DATABASE)

    assert not again.filled
    assert (again.tables, again.tenants, again.reader_url) == (sample.tables, sample.tenants, sample.reader_url)
    assert value(product, "SELECT xmin::text FROM app.sample") == before


def test_a_schema_of_somebody_else_is_left_alone(postgres_url, empty_database_url):
    run(empty_database_url, "CREATE SCHEMA app; CREATE TABLE app.orders (id text)")
    name = psycopg.conninfo.conninfo_to_dict(empty_database_url)["dbname"]

    with pytest.raises(SampleError, match=f'"{name}" has a schema "app" that is not the sample'):
        ensure_sample(postgres_url, database=name)
    run(empty_database_url, "SELECT id FROM app.orders")


def test_the_facts_are_what_the_database_holds(sample, product):
    counted = {table: value(product, f"SELECT count(*) FROM app.{table}") for table in sample.tables}

    assert counted == sample.tables
    assert sample.rows == sum(counted.values())
    assert sample.tenants == 8
    assert value(product, "SELECT count(*) FROM app.events WHERE account_id = %s", BIG_TENANT) == 320_000
    assert value(product, "SELECT count(*) FROM app.accounts WHERE id NOT IN (SELECT account_id FROM app.events)") == 1


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("orders", r"note ~ E'\n' AND note !~ E'\r'"),
        ("orders", r"note ~ E'\r\n'"),
        ("orders", r"note ~ E'\r[^\n]'"),
        ("orders", r"note ~ E'\t'"),
        ("orders", "note = ''"),
        ("orders", "note IS NULL"),
        ("orders", "note = 'NULL'"),
        ("orders", r"note = '\N'"),
        ("orders", r"note = '\.'"),
        ("orders", "note LIKE '=HYPERLINK(%'"),
        ("orders", "note = '-42'"),
        ("orders", """note LIKE '"%"'"""),
        ("orders", "note LIKE ' % '"),
        ("orders", "note LIKE '%' || U&'\\+01F382' || '%'"),
        ("orders", "note LIKE '%' || U&'\\200F' || '%'"),
        ("orders", "note <> normalize(note, NFC)"),
        ("orders", "length(note) > 2000"),
        ("orders", "total < 0"),
        ("orders", "array_position(tags, NULL) IS NOT NULL"),
        ("orders", "tags = '{}'"),
        ("orders", "lines::text LIKE '%null%'"),
        ("events", "payload ->> 'text' ~ E'\\n'"),
        ("events", "member_id IS NULL"),
        ("events", "ip IS NULL"),
        ("events", "family(ip) = 6"),
        ("events", "amount IS NULL"),
        ("events", "amount > 1e19 AND scale(amount) = 9"),
        ("events", "amount < 0"),
        ("events", "amount::text LIKE '%.%0'"),
        ("events", "EXTRACT(microseconds FROM occurred_at)::bigint % 1000 <> 0"),
        ("events", r"labels::text ~ E'\n'"),
        ("members", "last_seen_at IS NULL"),
        ("members", "full_name ~ '[^[:ascii:]]'"),
        ("accounts", """name LIKE '%"%' AND name LIKE '%''%'"""),
    ],
)
def test_the_rows_hold_what_breaks_careless_exports(product, table, condition):
    assert value(product, f"SELECT count(*) FROM app.{table} WHERE {condition}") > 0


def test_the_reader_sees_one_tenant_and_changes_nothing(sample):
    with psycopg.connect(sample.reader_url, autocommit=True) as reader:
        assert value(reader, "SELECT count(*) FROM app.events") == 0
        reader.execute("SELECT set_config('tenure.tenant_id', 'casa-azul', false)")
        assert value(reader, "SELECT count(*) FROM app.events") == 610
        assert value(reader, "SELECT string_agg(id, ',') FROM app.accounts") == "casa-azul"
        for attempt in ("DELETE FROM app.events", "UPDATE app.orders SET total = 0", "CREATE TABLE app.mine ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(attempt)


def test_the_password_of_the_reader_is_no_constant(sample):
    reader, owner = (
        psycopg.conninfo.conninfo_to_dict(url)["password"] for url in (sample.reader_url, sample.owner_url)
    )

    assert reader != owner
    assert len(reader) == 64
    assert reader not in repr(sample)


def test_the_catalogue_loads_and_the_source_agrees_with_every_dataset(sample, settings):
    url = PostgresSettings(url=settings.sources["product"].url.text)
    assert list(settings.catalogue.datasets) == ["account", "members", "orders", "events"]
    with open_postgres(url, tenant_id="casa-azul", label="test", tick=lambda: None) as source:
        counts = {name: source.count(_all_of(dataset)) for name, dataset in settings.catalogue.datasets.items()}

    assert counts == {"account": 1, "members": 6, "orders": 140, "events": 610}


def _all_of(dataset):
    selection = Selection(dataset=dataset.name, columns=dataset.column_names())
    return ReadRequest(dataset=dataset, selection=selection, tenant_id="casa-azul", cutoff=LATER)
