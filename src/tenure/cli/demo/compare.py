"""Compares an exported file with the source, cell by cell.

The CSV reader is our own: Python's cannot tell NULL (nothing between two commas) from the empty string (two quotes).
"""

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from tenure.cli.demo.running import DemoError
from tenure.cli.demo.source import Events, Row, open_source

CELL_CHARS_MAX = 60
"""How much of a cell a mismatch quotes."""

_FIELD = re.compile(r'(?:^|,)("[^"]*(?:""[^"]*)*"|[^",]*)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was found equal."""

    source_rows: int
    rows: int
    cells: int


def compare(path: Path, owner_url: str, events: Events) -> Compared:
    """Compare a CSV file, gzip or plain, with the events. Raises DemoError at the first difference."""
    with _opened(path) as file, open_source(owner_url, snapshot=True) as source:
        counted = source.count(events)
        rows = read_csv(file)
        header = tuple(next(rows, ()))
        if header != events.columns:
            raise DemoError(f"{path.name} begins with the columns {', '.join(map(str, header))}")
        with closing(source.rows(events)) as theirs:
            compared = compare_rows(rows, theirs, events.columns)
    if compared != counted:
        raise DemoError(f"{path.name} holds {compared:,} rows, count(*) in the source says {counted:,}")
    return Compared(source_rows=counted, rows=compared, cells=compared * len(events.columns))


def compare_rows(ours: Iterable[Row], theirs: Iterable[Row], columns: Sequence[str]) -> int:
    """How many rows there are, when all are equal. Raises DemoError that names row, column and both values."""
    number = 0
    for number, (mine, their) in enumerate(zip_longest(ours, theirs), start=1):
        if mine is None or their is None:
            where = "the source" if mine is None else "the file"
            raise DemoError(f"only {where} has a row {number:,}")
        if list(mine) != list(their):
            raise DemoError(_difference(number, mine, their, columns))
    return number


def read_csv(file: TextIO) -> Iterator[Row]:
    """Rows of RFC 4180 text, the header first; None is NULL. Lines end in LF alone: a CR is data."""
    record = ""
    for line in file:
        record += line
        # Quotes stand around fields and doubled inside them, so they are even in number where a record is whole.
        if record.count('"') % 2 == 0:
            yield _fields(record.removesuffix("\n"))
            record = ""
    if record:
        raise DemoError("the file ends inside a quoted field")


def _fields(record: str) -> Row:
    if '"' not in record:
        return [field or None for field in record.split(",")]
    fields = _FIELD.findall(record)
    if sum(map(len, fields)) + len(fields) - 1 != len(record):
        raise DemoError(f"not well-formed CSV: {_shown(record)}")
    return [_unquoted(field) for field in fields]


def _unquoted(field: str) -> str | None:
    if field[:1] == '"':
        return field[1:-1].replace('""', '"')
    return field or None


def _difference(number: int, mine: Row, their: Row, columns: Sequence[str]) -> str:
    if len(mine) != len(their):
        return f"row {number:,} has {len(mine)} fields where the source has {len(their)}"
    place = next(place for place, pair in enumerate(zip(mine, their, strict=True)) if pair[0] != pair[1])
    return (
        f"row {number:,}, column {columns[place]}: the file says {_shown(mine[place])}, "
        f"the source says {_shown(their[place])}"
    )


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")


def _shown(cell: str | None) -> str:
    if cell is None:
        return "NULL"
    return ascii(cell if len(cell) <= CELL_CHARS_MAX else f"{cell[:CELL_CHARS_MAX]}...")
