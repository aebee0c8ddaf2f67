"""Every type's text, from the table through COPY to a parser that tells NULL from the empty string."""

import psycopg
import pytest
from source_server import dataset, execute, opened, request

from tenure.core.dataset import Filter, FilterOperator
from tenure.core.manifest import Dialect
from tenure.sources.statements import SESSION

TYPES = """
CREATE TYPE mood AS ENUM ('sad, very', 'it''s "ok"');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN short AS text CHECK (length(VALUE) < 9);
CREATE DOMAIN answer AS boolean;
"""
COLUMNS = {
    "a_text": (
        "text",
        ["'plain'", "''", "NULL", "'a,b'", "'say \"hi\"'", "E'two\\nlines'", "E'lone\\rCR'", "E'\\r\\n'"],
    ),
    "b_text": (
        "text",
        ["'üñí🎈'", "' space '", "E'\\t'", "'\\.'", "'NULL'", "'=1+1'", "E'\\u2028'", "repeat('x', 70000)"],
    ),
    "c_int": ("bigint", ["9223372036854775807", "-9223372036854775808", "0", "NULL"]),
    "d_numeric": ("numeric", ["'NaN'", "1e131071", "-0.00000000000000000001", "1.10", "'Infinity'"]),
    "e_scaled": ("numeric(12,2)", ["1.005", "-9999999999.99", "0"]),
    "f_float": ("float8", ["0.1::float8 + 0.2", "'NaN'", "'-Infinity'", "5e-324", "1e22"]),
    "g_real": ("float4", ["0.1", "3.4e38"]),
    "h_bool": ("boolean", ["true", "false", "NULL"]),
    "i_answer": ("answer", ["true", "NULL"]),
    "j_tz": (
        "timestamptz",
        ["'2026-01-02 03:04:05.678+05:30'", "'infinity'", "'-infinity'", "'0044-03-15 12:00+00 BC'", "'12026-01-01Z'"],
    ),
    "k_ts": ("timestamp", ["'2026-01-02 03:04:05.000001'", "'infinity'", "'4713-11-24 BC'"]),
    "l_date": ("date", ["'2026-02-28'", "'infinity'", "'5874897-12-31'"]),
    "m_time": ("time", ["'24:00'", "'00:00:00.000001'"]),
    "n_timetz": ("timetz", ["'12:00+14'"]),
    "o_interval": ("interval", ["'1 year 2 mons -3 days 04:05:06.789'", "'-1 day'", "'0'"]),
    "p_json": ("json", ['\'{"a": 1.10, "a": 2, "t": "x\\ny"}\'', "E'{\"raw\":\\n 1}'", "'null'"]),
    "q_jsonb": ("jsonb", ['\'{"a": 1.10, "big": 12345678901234567890123}\'', "'\"\"'"]),
    "r_array": ("text[]", ["ARRAY['a,b', 'c\"d', NULL, '']", "'{}'", "'[5:6]={x,y}'"]),
    "s_matrix": ("int[][]", ["'{{1,2},{3,4}}'"]),
    "t_bytea": ("bytea", ["'\\x00ff0a0d22'", "''"]),
    "u_uuid": ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "v_range": ("tstzrange", ["'[2026-01-01 00:00+02, infinity)'", "'empty'"]),
    "w_multi": ("int4multirange", ["'{[1,3),[5,8)}'"]),
    "x_pair": ("pair", ["ROW(1, 'x,\"y')", "ROW(NULL, '')", "NULL"]),
    "y_mood": ("mood", ["'sad, very'", "'it''s \"ok\"'"]),
    "z_short": ("short", ["'abc'", "''"]),
    "za_money": ("money", ["'-1234567.89'"]),
    "zb_bit": ("bit(4)", ["B'0101'"]),
    "zc_varbit": ("varbit", ["B'010101'", "B''"]),
    "zd_inet": ("inet", ["'192.168.0.1'", "'::1/64'"]),
    "ze_char": ("char(6)", ["'ab'", "''"]),
    "zf_point": ("point", ["'(1.5,-2)'"]),
    "zg_tsv": ("tsvector", ["to_tsvector('simple', 'a fat cat, \"x\"')"]),
    "zi_oid": ("regclass", ["'pg_class'"]),
}
ROWS = max(len(values) for _, values in COLUMNS.values())


@pytest.fixture
def nasty(source_url):
    """A table of hostile values, a column for each type."""
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    cells = [[values[row] if row < len(values) else "NULL" for _, values in COLUMNS.values()] for row in range(ROWS)]
    rows = ", ".join(f"({row}, 'acme', {', '.join(values)})" for row, values in enumerate(cells))
    execute(
        source_url,
        TYPES,
        f"CREATE TABLE nasty (id int, tenant text, {columns})",
        f"INSERT INTO nasty VALUES {rows}",
    )
    return source_url


def exported(url: str, query: str, columns: tuple[str, ...], dialect: Dialect | None = None) -> bytes:
    found = bytearray()
    with opened(url) as source:
        source.copy_csv(
            request(dataset(query, columns=columns)), dialect or Dialect(), lambda block, _: found.extend(block)
        )
    return bytes(found)


def parse_csv(content: bytes, delimiter: str = ",") -> list[list[str | None]]:
    """RFC 4180 with LF, in which an unquoted empty field is NULL. Refuses a lone CR outside quotes."""
    text = content.decode()
    records, record, at = [], [], 0
    while at < len(text):
        if text[at] == '"':
            field, at = "", at + 1
            while True:
                end = text.index('"', at)
                field += text[at:end]
                at = end + 1
                if text[at] != '"':
                    break
                field, at = field + '"', at + 1
            record.append(field)
        else:
            end = min(place for place in (text.find(delimiter, at), text.find("\n", at)) if place >= 0)
            assert "\r" not in text[at:end]
            record.append(text[at:end] or None)
            at = end
        if text[at] == "\n":
            records.append(record)
            record = []
        else:
            assert text[at] == delimiter
            if text[at + 1] == "\n":
                record.append(None)
                records.append(record)
                record, at = [], at + 1
        at += 1
    return records


def own_text(url: str) -> list[list[str | None]]:
    """What PostgreSQL itself says, one cell at a time: `format` calls the type's output function."""
    pins = "; ".join(f"SET \"{name}\" = '{value}'" for name, value in SESSION.items())
    texts = ", ".join(
        f'CASE WHEN n."{name}" IS NOT DISTINCT FROM NULL THEN NULL ELSE format(\'%s\', n."{name}") END'
        for name in COLUMNS
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(pins)
        rows = connection.execute(f"SELECT {texts} FROM nasty n ORDER BY id").fetchall()
    booleans = [place for place, name in enumerate(COLUMNS) if name in {"h_bool", "i_answer"}]
    spelled = {"t": "true", "f": "false", None: None}
    return [[spelled[cell] if place in booleans else cell for place, cell in enumerate(row)] for row in rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_type_arrives_as_postgresql_itself_writes_it(nasty, delimiter):
    content = exported(nasty, "SELECT * FROM nasty", tuple(COLUMNS), Dialect(delimiter=delimiter))
    expected = own_text(nasty)
    found = parse_csv(content, delimiter)
    assert len(found) == ROWS
    for place, name in enumerate(COLUMNS):
        assert (name, [row[place] for row in found]) == (name, [row[place] for row in expected])


def test_values_that_other_ways_of_reading_corrupt_are_kept(nasty):
    wanted = ("j_tz", "m_time", "o_interval", "p_json", "t_bytea", "h_bool")
    first, second, *_, last = parse_csv(exported(nasty, "SELECT * FROM nasty", wanted))
    assert first == [
        "2026-01-01 21:34:05.678+00",
        "24:00:00",
        "P1Y2M-3DT4H5M6.789S",
        '{"a": 1.10, "a": 2, "t": "x\\ny"}',
        "\\x00ff0a0d22",
        "true",
    ]
    assert second == ["infinity", "00:00:00.000001", "P-1D", '{"raw":\n 1}', "\\x", "false"]
    assert last == [None] * 6


def test_null_and_the_empty_string_differ(nasty):
    content = exported(nasty, "SELECT * FROM nasty WHERE id IN (1, 2)", ("a_text", "c_int"))
    assert content == b'"",-9223372036854775808\n,0\n'


def test_a_lone_carriage_return_is_quoted(nasty):
    assert exported(nasty, "SELECT * FROM nasty WHERE id = 6", ("a_text",)) == b'"lone\rCR"\n'


@pytest.mark.parametrize(
    "setting",
    [
        "TimeZone = 'Asia/Kolkata'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'sql_standard'",
        "extra_float_digits = -10",
        "bytea_output = 'escape'",
        "client_encoding = 'LATIN1'",
    ],
)
def test_the_database_s_own_settings_do_not_show(nasty, setting):
    before = exported(nasty, "SELECT * FROM nasty", tuple(COLUMNS))
    name = psycopg.conninfo.conninfo_to_dict(nasty)["dbname"]
    execute(nasty, f"ALTER DATABASE {name} SET {setting}")
    assert exported(nasty, "SELECT * FROM nasty", tuple(COLUMNS)) == before


def test_columns_are_described_with_their_types(nasty):
    with opened(nasty) as source:
        columns = source.columns(dataset("SELECT * FROM nasty", columns=tuple(COLUMNS)))
    assert columns["e_scaled"].type_name == "numeric(12,2)"
    assert columns["ze_char"].type_name == "character(6)"
    assert columns["ze_char"].cast_name == "bpchar"
    assert columns["j_tz"].type_name == "timestamp with time zone"
    assert columns["y_mood"].type_name == "mood"


def test_rows_come_in_key_order_whatever_their_order_on_disk(source_url):
    execute(
        source_url,
        "CREATE TABLE t (id int, tenant text)",
        "INSERT INTO t SELECT (i * 7919) % 10007, 'acme' FROM generate_series(1, 10006) i",
    )
    assert exported(source_url, "SELECT * FROM t", ("id",)) == b"".join(b"%d\n" % number for number in range(1, 10_007))


def test_a_value_in_any_script_is_found_whatever_encoding_the_database_gives_its_clients(nasty):
    name = psycopg.conninfo.conninfo_to_dict(nasty)["dbname"]
    execute(nasty, f"ALTER DATABASE {name} SET client_encoding = 'LATIN1'")
    chosen = dataset("SELECT * FROM nasty", columns=("id", "b_text"))
    given = Filter(column="b_text", operator=FilterOperator.EQ, values=("üñí🎈",))
    with opened(nasty) as source:
        assert source.count(request(chosen, given)) == 1
