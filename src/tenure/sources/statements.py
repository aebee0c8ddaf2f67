"""The SQL a PostgreSQL source runs. Names come from the catalogue, values are quoted literals, nothing else gets in.

COPY takes no bind parameters, so a value is a literal of text, cast to the column's type by name: PostgreSQL's own
input function reads it, exactly as it would read a bound one.
"""

from collections.abc import Iterator, Mapping

from psycopg import sql

from tenure.core.dataset import Dataset, Filter, FilterOperator, Scalar
from tenure.core.manifest import Dialect
from tenure.sources.request import ReadRequest, SourceColumn

Columns = Mapping[str, SourceColumn]

BEGIN = sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

SESSION = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "xmlbinary": "base64",
    # A source whose turn comes late waits in its open view while others are read; the run's own limit bounds it.
    "idle_in_transaction_session_timeout": "0",
}
"""Everything that changes how PostgreSQL writes a value, pinned: a role's or database's own settings must not show."""

COLUMN_TYPES = """
SELECT format_type(given.oid, given.modifier),
       format_type(given.oid, -1),
       base.oid = 'bool'::regtype
  FROM unnest({oids}::oid[], {modifiers}::int4[]) WITH ORDINALITY AS given (oid, modifier, place)
  JOIN pg_catalog.pg_type AS type ON type.oid = given.oid
  JOIN pg_catalog.pg_type AS base ON base.oid = CASE type.typtype WHEN 'd' THEN type.typbasetype ELSE type.oid END
 ORDER BY given.place
"""
# -1 rather than NULL as modifier: `bpchar` and not `character`, which would cut a literal to one letter.


def set_local(settings: Mapping[str, str]) -> sql.Composed:
    """Settings for the rest of the transaction; `set_config` because SET takes no expressions."""
    calls = [sql.SQL("set_config({}, {}, true)").format(name, value) for name, value in settings.items()]
    return sql.SQL("SELECT ") + sql.SQL(", ").join(calls)


def describe(dataset: Dataset) -> sql.Composed:
    """No rows, only the names and types of the query's columns."""
    return sql.SQL("SELECT * FROM {} LIMIT 0").format(_query(dataset))


def column_types(oids: list[int], modifiers: list[int]) -> sql.Composed:
    return sql.SQL(COLUMN_TYPES).format(oids=sql.Literal(oids), modifiers=sql.Literal(modifiers))


def count_rows(request: ReadRequest, columns: Columns) -> sql.Composed:
    return sql.SQL("SELECT count(*) FROM {} WHERE {}").format(_query(request.dataset), _condition(request, columns))


def copy_rows(request: ReadRequest, columns: Columns, dialect: Dialect) -> sql.Composed:
    """CSV text of the rows in key order. Where two rows share a key, their order is not defined."""
    chosen = sql.SQL(", ").join(_output(columns[name]) for name in request.selection.columns)
    order = sql.SQL(", ").join(_column(name) for name in request.dataset.key)
    return sql.SQL(
        "COPY (SELECT {} FROM {} WHERE {} ORDER BY {}) TO STDOUT WITH (FORMAT csv, DELIMITER {}, ENCODING 'UTF8')",
    ).format(
        chosen,
        _query(request.dataset),
        _condition(request, columns),
        order,
        sql.Literal(dialect.delimiter),
    )


def probe_tenant(request: ReadRequest, column: SourceColumn) -> sql.Composed:
    """True where the tenant's id survives the column's type: `007` must not become the tenant `7`."""
    return sql.SQL("SELECT ({})::text = {}").format(_cast(request.tenant_id, column), sql.Literal(request.tenant_id))


def probe_filter(given: Filter, column: SourceColumn) -> sql.Composed | None:
    """Casts the filter's values and nothing more, so that a bad one is told apart from a bad query."""
    match given.operator:
        case FilterOperator.NULL:
            return None
        case FilterOperator.PREFIX | FilterOperator.CONTAINS:
            return sql.SQL("SELECT {}").format(_pattern(given))
        case _:
            casts = [_cast(value, column) for value in given.values if value is not None]
            return sql.SQL("SELECT ") + sql.SQL(", ").join(casts)


def shape_problem(given: Filter) -> str | None:
    """What is wrong with a filter's number of values, or nothing."""
    match given.operator:
        case FilterOperator.IN:
            right = len(given.values) > 0 and None not in given.values
            return None if right else "`in` needs at least one value, none of them null"
        case FilterOperator.RANGE:
            return None if len(given.values) == 2 else "`range` needs two values, null where it is open"  # noqa: PLR2004
        case _:
            right = len(given.values) == 1 and given.values[0] is not None
            return None if right else f"`{given.operator}` needs one value, which is not null"


def filter_text(value: Scalar) -> str:
    """A JSON scalar as the text that PostgreSQL's input functions read."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case _:
            return str(value)


def _query(dataset: Dataset) -> sql.Composed:
    # On lines of its own: a comment at the query's end must not swallow the bracket.
    return sql.SQL("(\n{}\n) AS d").format(sql.SQL(dataset.query))


def _column(name: str) -> sql.Identifier:
    return sql.Identifier("d", name)


def _output(column: SourceColumn) -> sql.Composable:
    name = _column(column.name)
    # The output function says `t` and `f`, which no reader but PostgreSQL takes for a boolean; the cast spells it out.
    return sql.SQL("{}::text").format(name) if column.boolean else name


def _cast(value: Scalar, column: SourceColumn) -> sql.Composed:
    # The type's name is the server's own spelling of it, quoted where it must be.
    return sql.SQL("CAST({} AS {})").format(
        sql.Literal(filter_text(value)),
        sql.SQL(column.cast_name),
    )


def _condition(request: ReadRequest, columns: Columns) -> sql.Composed:
    return sql.SQL(" AND ").join(_conditions(request, columns))


def _conditions(request: ReadRequest, columns: Columns) -> Iterator[sql.Composed]:
    tenant = columns[request.dataset.tenant_column]
    yield sql.SQL("{} = {}").format(_column(tenant.name), _cast(request.tenant_id, tenant))
    # The first finds the rows, by an index if there is one; this one is exact. citext and nondeterministic collations
    # call `Acme` and `acme` equal, and numeric calls 1 and 1.0 equal: two tenants may be called so.
    yield sql.SQL('{}::text COLLATE "C" = {}').format(_column(tenant.name), sql.Literal(request.tenant_id))
    if request.dataset.cutoff_column is not None:
        cutoff = columns[request.dataset.cutoff_column]
        yield sql.SQL("{} <= {}").format(_column(cutoff.name), _cast(request.cutoff.isoformat(), cutoff))
    for given in request.selection.filters:
        yield _filter(given, columns[given.column])


def _filter(given: Filter, column: SourceColumn) -> sql.Composed:
    name = _column(column.name)
    match given.operator:
        case FilterOperator.EQ:
            return sql.SQL("{} = {}").format(name, _cast(given.values[0], column))
        case FilterOperator.NE:
            # A NULL is not equal to the value either: `<>` would leave those rows out unasked.
            return sql.SQL("{} IS DISTINCT FROM {}").format(name, _cast(given.values[0], column))
        case FilterOperator.IN:
            values = sql.SQL(", ").join(_cast(value, column) for value in given.values)
            return sql.SQL("{} IN ({})").format(name, values)
        case FilterOperator.RANGE:
            return _range(given, column)
        case FilterOperator.NULL:
            return sql.SQL("{} IS NULL" if given.values[0] else "{} IS NOT NULL").format(name)
        case FilterOperator.PREFIX | FilterOperator.CONTAINS:
            return sql.SQL("{}::text LIKE {}").format(name, _pattern(given))


def _range(given: Filter, column: SourceColumn) -> sql.Composed:
    start, end = given.values
    bounds = [
        sql.SQL("{} {} {}").format(_column(column.name), sql.SQL(sign), _cast(value, column))
        for sign, value in ((">=", start), ("<", end))
        if value is not None
    ]
    return sql.SQL(" AND ").join(bounds) if bounds else sql.Composed([sql.SQL("true")])


def _pattern(given: Filter) -> sql.Literal:
    """LIKE pattern in which the caller's `%`, `_` and backslash stand for themselves."""
    text = filter_text(given.values[0]).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return sql.Literal(f"{text}%" if given.operator == FilterOperator.PREFIX else f"%{text}%")
