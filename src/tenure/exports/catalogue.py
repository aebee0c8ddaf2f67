"""Reads the catalogue: the `[[datasets]]` tables of tenure.toml become datasets, or every problem in them is named.

Only what is written there can ever reach SQL as an identifier. Whether the columns exist in the source is for the
source to say (`tenure doctor` asks it); here the declaration is checked against itself.
"""

import re
from collections.abc import Collection, Sequence

from tenure.core import limits
from tenure.core.dataset import Catalogue, Column, Dataset, FilterOperator
from tenure.core.errors import InvalidSettingsError
from tenure.core.fields import Problems, Table, dotted_name, shown, suggestion

IDENTIFIER_BYTES_MAX = 63
"""PostgreSQL cuts longer identifiers silently, so two of them could become one."""
ROW_LIMIT_MAX = 1_000_000_000_000
QUERY_TIMEOUT_SECONDS_MAX = 86_400

_DATASET_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_SELECT = re.compile(r"(select|with|values|table)\b", re.IGNORECASE | re.ASCII)


def read_catalogue(raw: Sequence[object], source_names: Collection[str]) -> Catalogue:
    """The datasets, in the order of their declaration.

    `raw` is the list of tables as TOML gives it; `source_names` are the sources the settings declare.
    Raises InvalidSettingsError with every problem, each under its dotted name (`datasets[0].key`).
    """
    problems = Problems(dotted_name)
    datasets: dict[str, Dataset] = {}
    for index, value in enumerate(raw):
        table = Table(value, ("datasets", index), problems)
        dataset = _read_dataset(table, source_names)
        if dataset.name in datasets:
            table.note("name", f"{shown(dataset.name)} is declared twice")
        datasets[dataset.name] = dataset
    if problems.found():
        raise InvalidSettingsError(*problems.found())
    return Catalogue(datasets=datasets)


def _read_dataset(table: Table, source_names: Collection[str]) -> Dataset:
    columns = _read_columns(table)
    key = _read_key(table)
    tenant_column = _read_identifier(table, "tenant_column", required=True)
    cutoff_column = _read_identifier(table, "cutoff_column") or None
    filterable = {column.name for column in columns} | set(key) | ({cutoff_column} if cutoff_column else set())
    dataset = Dataset(
        name=_read_name(table),
        source=_read_source(table, source_names),
        query=_read_query(table),
        tenant_column=tenant_column,
        key=key,
        columns=columns,
        cutoff_column=cutoff_column,
        filters=_read_filters(table, filterable - {tenant_column}),
        description=table.text("description", ""),
        row_limit=table.whole("row_limit", limits.ROW_LIMIT_DEFAULT, low=1, high=ROW_LIMIT_MAX),
        query_timeout_seconds=table.number(
            "query_timeout_seconds",
            limits.QUERY_TIMEOUT_SECONDS_DEFAULT,
            low=0.001,
            high=QUERY_TIMEOUT_SECONDS_MAX,
        ),
    )
    table.refuse_unknown()
    return dataset


def _read_name(table: Table) -> str:
    name = table.required_text("name")
    if name and not _DATASET_NAME.fullmatch(name):
        table.note("name", "must start with a small letter; small letters, digits and _ may follow, 63 at most")
    return name


def _read_source(table: Table, source_names: Collection[str]) -> str:
    source = table.required_text("source")
    if source and source not in source_names:
        table.note("source", f"{shown(source)} is not one of [sources].{suggestion(source, sorted(source_names))}")
    return source


def _read_query(table: Table) -> str:
    """The SELECT to use as a subquery. A table is read as all its columns; the export then names those it needs."""
    has_query, has_table = table.has("query"), table.has("table")
    if has_query == has_table:
        table.note("query", "give either query or table" + (", not both" if has_query else ""))
    if has_table:
        return f"SELECT * FROM {_read_table_name(table)}"  # noqa: S608  quoted below
    query = table.text("query", "").strip().rstrip(";").rstrip()
    if query and not _SELECT.match(query):
        table.note("query", "must be one SELECT")
    _refuse_nul(table, "query", query)
    return query


def _read_table_name(table: Table) -> str:
    """`orders` or `public.orders`, quoted. A name with a dot in it needs a query instead."""
    parts = table.text("table", "").split(".")
    if len(parts) > 2 or not all(parts):  # noqa: PLR2004  schema and table
        table.note("table", "must be a table's name, or schema.table")
    for part in parts:
        _check_identifier(table, "table", part)
    return ".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in parts)


def _read_columns(table: Table) -> tuple[Column, ...]:
    columns: dict[str, Column] = {}
    for index, item in enumerate(table.items("columns")):
        entry = Table(
            {"name": item} if isinstance(item, str) else item, (*table.path, "columns", index), table.problems
        )
        name = _read_identifier(entry, "name", required=True)
        if name and name in columns:
            entry.note("name", f"{shown(name)} appears more than once")
        columns[name] = Column(name=name, description=entry.text("description", ""))
        entry.refuse_unknown()
    if not columns:
        table.note("columns", "must name at least one column")
    if len(columns) > limits.COLUMNS_MAX:
        table.note("columns", f"must be at most {limits.COLUMNS_MAX}, not {len(columns)}")
    return tuple(columns.values())


def _read_key(table: Table) -> tuple[str, ...]:
    """Columns that are unique together. They need not be exported."""
    key = table.texts("key")
    if not key:
        table.note("key", "must name the columns that are unique together; they fix the order of rows")
    for column in key:
        _check_identifier(table, "key", column)
    return key


def _read_filters(table: Table, filterable: Collection[str]) -> dict[str, frozenset[FilterOperator]]:
    """Column -> operators. Only declared columns: a filter on any other would tell what is in it."""
    if not table.has("filters"):
        return {}
    filters = table.table("filters")
    allowed = tuple(operator.value for operator in FilterOperator)
    found: dict[str, frozenset[FilterOperator]] = {}
    for column in filters.names():
        if column not in filterable:
            filters.note(
                column, f"is neither in columns, key nor cutoff_column.{suggestion(column, sorted(filterable))}"
            )
        operators = filters.texts(column)
        if not operators:
            filters.note(column, f"must list operators. Allowed: {', '.join(allowed)}.")
        for operator in operators:
            if operator not in allowed:
                filters.note(column, f"{shown(operator)} is not an operator.{suggestion(operator, allowed)}")
        found[column] = frozenset(FilterOperator(operator) for operator in operators if operator in allowed)
    return found


def _read_identifier(table: Table, name: str, *, required: bool = False) -> str:
    value = table.required_text(name) if required else table.text(name, "")
    _check_identifier(table, name, value)
    return value


def _check_identifier(table: Table, name: str, value: str) -> None:
    _refuse_nul(table, name, value)
    if len(value.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES_MAX:
        table.note(name, f"{shown(value)} is longer than {IDENTIFIER_BYTES_MAX} bytes")


def _refuse_nul(table: Table, name: str, value: str) -> None:
    if "\0" in value:
        table.note(name, "must not hold a NUL character")
