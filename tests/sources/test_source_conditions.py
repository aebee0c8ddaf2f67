"""Which rows are read: the tenant's, up to the cutoff, under filters whose values are data and nothing else."""

import psycopg
import pytest
from source_server import dataset, execute, fresh_database, opened, request

from tenure.core.dataset import Filter, FilterOperator
from tenure.core.errors import InvalidRequestError, SourceQueryError
from tenure.core.manifest import Dialect

ROWS = """
INSERT INTO orders VALUES
    (1, 'acme', 'paid',     10.00, '2026-01-01 00:00+00', '50% off',   'ab', true),
    (2, 'acme', 'paid',     20.50, '2026-02-01 00:00+00', 'a_b',       'ab', false),
    (3, 'acme', 'open',     NULL,  '2026-03-01 00:00+00', 'axb',       'c',  NULL),
    (4, 'acme', NULL,       30.00, '2026-05-31 23:59:59.999999+00', NULL, 'd', true),
    (5, 'acme', 'O''Neil\\', 1.23,  '2026-06-01 00:00+00', '\\%',       'e', true),
    (6, 'acme', 'paid',     99.00, '2026-06-01 00:00:00.000001+00', 'late', 'ab', true),
    (7, 'other', 'paid',    10.00, '2026-01-01 00:00+00', '50% off',   'ab', true),
    (8, NULL,   'paid',     10.00, '2026-01-01 00:00+00', '50% off',   'ab', true)
"""
NAMES = ("id", "status", "amount", "paid_at", "note", "code", "flag")


@pytest.fixture(scope="module")
def orders_url(source_server):
    """A database that tests only read from."""
    with fresh_database(source_server) as url:
        execute(
            url,
            "CREATE TABLE orders (id int, tenant text, status text, amount numeric(8,2), paid_at timestamptz,"
            " note text, code char(4), flag bool)",
            ROWS,
        )
        yield url


def ids(url: str, *filters: Filter, tenant: str = "acme", **changes) -> list[int]:
    asked = request(
        dataset("SELECT * FROM orders", columns=NAMES, **{"cutoff_column": "paid_at", **changes}),
        *filters,
        tenant=tenant,
        columns=("id",),
    )
    found = bytearray()
    with opened(url, tenant=tenant) as source:
        source.check(asked)
        count = source.count(asked)
        copied = source.copy_csv(asked, Dialect(), lambda block, _: found.extend(block))
    numbers = [int(line) for line in found.split()]
    assert count == copied == len(numbers)
    return numbers


def where(column: str, operator: str, *values) -> Filter:
    return Filter(column=column, operator=FilterOperator(operator), values=values)


def test_only_the_tenant_s_rows_are_read(orders_url):
    assert ids(orders_url) == [1, 2, 3, 4, 5]
    assert ids(orders_url, tenant="other") == [7]
    assert ids(orders_url, tenant="nobody") == []


def test_rows_later_than_the_cutoff_are_left_out_and_those_at_it_are_in(orders_url):
    assert 5 in ids(orders_url)
    assert 6 not in ids(orders_url)
    assert 6 in ids(orders_url, cutoff_column=None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (where("status", "eq", "paid"), [1, 2]),
        (where("status", "eq", "O'Neil\\"), [5]),
        (where("status", "ne", "paid"), [3, 4, 5]),
        (where("status", "in", "open", "O'Neil\\"), [3, 5]),
        (where("status", "null", True), [4]),
        (where("status", "null", False), [1, 2, 3, 5]),
        (where("amount", "eq", 20.5), [2]),
        (where("amount", "eq", 10), [1]),
        (where("amount", "range", 10, 30), [1, 2]),
        (where("amount", "range", None, 10), [5]),
        (where("amount", "range", 20.5, None), [2, 4]),
        (where("amount", "range", None, None), [1, 2, 3, 4, 5]),
        (where("paid_at", "range", "2026-02-01T02:00:00+02:00", "2026-03-01T00:00:00Z"), [2]),
        (where("note", "prefix", "50%"), [1]),
        (where("note", "prefix", "a_"), [2]),
        (where("note", "contains", "_"), [2]),
        (where("note", "contains", "%"), [1, 5]),
        (where("note", "prefix", "\\"), [5]),
        (where("code", "eq", "ab"), [1, 2]),
        (where("flag", "eq", True), [1, 4, 5]),
        (where("flag", "ne", True), [2, 3]),
    ],
)
def test_each_operator_keeps_the_rows_it_says(orders_url, given, expected):
    assert ids(orders_url, given) == expected


def test_filters_must_all_hold(orders_url):
    assert ids(orders_url, where("status", "eq", "paid"), where("amount", "range", 15, None)) == [2]


def test_a_value_with_more_digits_than_its_column_is_not_rounded_into_a_match(orders_url):
    assert ids(orders_url, where("amount", "eq", 1.234)) == []


@pytest.mark.parametrize(
    "text",
    [
        "' OR true --",
        "'); DROP TABLE orders; --",
        "\\'; SELECT pg_sleep(10); --",
        "$$ OR 1=1 $$",
        "E'\\x27",
        "{}%s%(a)s$1",
        "paid' UNION SELECT 1 --",
        "\u02bc OR true --",
    ],
)
@pytest.mark.parametrize("operator", ["eq", "in", "prefix", "contains"])
def test_a_value_is_never_sql(orders_url, text, operator):
    assert ids(orders_url, where("status", operator, text)) == []
    assert ids(orders_url, tenant=text) == []
    assert ids(orders_url) == [1, 2, 3, 4, 5]


def test_names_from_the_catalogue_are_quoted(source_url):
    odd = 'we"ird, name; --'
    quoted = odd.replace('"', '""')
    execute(
        source_url,
        f'CREATE TABLE "{quoted}" (id int, "{quoted}" text, "Tenant Id" text)',
        f"INSERT INTO \"{quoted}\" VALUES (1, 'x', 'acme'), (2, 'y', 'acme')",
    )
    chosen = dataset(
        f'SELECT * FROM "{quoted}" -- a comment at the end',
        columns=("id", odd),
        tenant_column="Tenant Id",
        key=(odd, "id"),
    )
    found = bytearray()
    with opened(source_url) as source:
        source.copy_csv(request(chosen, where(odd, "eq", "x")), Dialect(), lambda block, _: found.extend(block))
    assert found == b"1,x\n"


@pytest.mark.parametrize(
    ("given", "type_name"),
    [
        (where("id", "eq", "1 OR true"), "integer"),
        (where("id", "in", 1, 2.5), "integer"),
        (where("paid_at", "range", "yesterday-ish", None), "timestamp with time zone"),
        (where("flag", "eq", "perhaps"), "boolean"),
        (where("status", "eq", "nul\0byte"), "text"),
        (where("status", "contains", "nul\0byte"), "text"),
        (where("status", "eq", "\ud800"), "text"),
    ],
)
def test_a_value_that_is_none_of_its_column_s_type_is_refused_by_name(orders_url, given, type_name):
    with pytest.raises(InvalidRequestError) as caught:
        ids(orders_url, given)
    assert caught.value.problems[0].pointer == f"/filters/{given.column}"
    assert type_name in caught.value.problems[0].detail


@pytest.mark.parametrize(
    "given",
    [
        where("id", "eq", None),
        where("id", "in"),
        where("id", "in", 1, None),
        where("id", "range", 1),
        where("id", "eq"),
    ],
)
def test_a_filter_with_the_wrong_number_of_values_is_refused(orders_url, given):
    with pytest.raises(InvalidRequestError, match="/filters/id"):
        ids(orders_url, given)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"columns": ("id", "gone")}, 'no column "gone"'),
        ({"tenant_column": "gone"}, 'no column "gone"'),
        ({"cutoff_column": "gone"}, 'no column "gone"'),
        ({"key": ("gone",)}, 'no column "gone"'),
    ],
)
def test_a_column_the_query_does_not_give_is_named(orders_url, changes, problem):
    with opened(orders_url) as source, pytest.raises(SourceQueryError, match=problem):
        source.columns(dataset("SELECT * FROM orders", **changes))


def test_a_column_given_twice_is_refused(orders_url):
    with opened(orders_url) as source, pytest.raises(SourceQueryError, match='more than one column "id"'):
        source.columns(dataset("SELECT *, 1 AS id FROM orders"))


def test_a_tenant_s_id_must_survive_the_type_of_its_column(source_url):
    execute(source_url, "CREATE TABLE t (id int, tenant int)", "INSERT INTO t VALUES (1, 7)")
    chosen = dataset("SELECT * FROM t")
    with opened(source_url) as source:
        source.check(request(chosen, tenant="7"))
        with pytest.raises(SourceQueryError, match="the tenant's id is no integer"):
            source.check(request(chosen, tenant="007"))
    with opened(source_url) as source, pytest.raises(SourceQueryError, match="the tenant's id is no integer"):
        source.check(request(chosen, tenant="acme"))


def test_a_type_that_ignores_case_does_not_mix_tenants(source_url):
    # citext in small: a text type of somebody else's, whose `=` ignores case.
    execute(
        source_url,
        "CREATE TYPE loose",
        "CREATE FUNCTION loose_in(cstring) RETURNS loose LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
        "CREATE FUNCTION loose_out(loose) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
        "CREATE TYPE loose (INPUT = loose_in, OUTPUT = loose_out, LIKE = text, CATEGORY = 'S')",
        "CREATE CAST (loose AS text) WITHOUT FUNCTION AS IMPLICIT",
        "CREATE FUNCTION loose_eq(loose, loose) RETURNS bool LANGUAGE sql IMMUTABLE"
        " AS 'SELECT lower($1::text) = lower($2::text)'",
        "CREATE OPERATOR = (LEFTARG = loose, RIGHTARG = loose, FUNCTION = loose_eq)",
        "CREATE TABLE orders (id int, tenant loose)",
        "INSERT INTO orders VALUES (1, 'acme'), (2, 'Acme')",
    )
    found = bytearray()
    with opened(source_url) as source:
        source.copy_csv(request(dataset("SELECT * FROM orders")), Dialect(), lambda block, _: found.extend(block))
    assert found == b"1\n"


def test_row_level_security_sees_the_tenant(orders_url):
    name = psycopg.conninfo.conninfo_to_dict(orders_url)["dbname"]
    role = f"reader_{name}"
    execute(
        orders_url,
        f"CREATE ROLE {role} LOGIN PASSWORD 'reader'",
        f"GRANT SELECT ON orders TO {role}",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON orders USING (tenant = current_setting('tenure.tenant_id'))",
    )
    url = psycopg.conninfo.make_conninfo(orders_url, user=role, password="reader")
    try:
        assert ids(url) == [1, 2, 3, 4, 5]
        assert ids(url, tenant="other") == [7]
    finally:
        execute(orders_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_source_is_read_only(orders_url):
    execute(
        orders_url,
        "CREATE FUNCTION sneaky() RETURNS int LANGUAGE sql AS 'DELETE FROM orders RETURNING id'",
    )
    chosen = dataset("SELECT sneaky() AS id, 'acme'::text AS tenant")
    with opened(orders_url) as source, pytest.raises(SourceQueryError, match="ReadOnlySqlTransaction"):
        source.copy_csv(request(chosen), Dialect(), lambda block, rows: None)
    assert ids(orders_url) == [1, 2, 3, 4, 5]


def test_a_query_cannot_smuggle_in_a_second_statement(orders_url):
    chosen = dataset("SELECT 1 AS id, 'acme' AS tenant) AS d; SELECT * FROM (SELECT 1 AS id, 'acme' AS tenant")
    with opened(orders_url) as source, pytest.raises(SourceQueryError, match="SyntaxError"):
        source.columns(chosen)


def test_ids_that_a_numeric_column_calls_equal_stay_two_tenants(source_url):
    execute(source_url, "CREATE TABLE orders (id int PRIMARY KEY, tenant numeric)", "INSERT INTO orders VALUES (1, 1)")
    rows = {}
    for tenant in ("1", "1.0"):
        with opened(source_url, tenant=tenant) as source:
            rows[tenant] = source.count(request(dataset("SELECT * FROM orders"), tenant=tenant))

    assert rows == {"1": 1, "1.0": 0}
