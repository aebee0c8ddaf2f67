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

_SPECIAL = re.compile('[",\r\n]')
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
        ours = records(file)
        header = tuple(cells(next(ours, "")))
        if header != events.columns:
            raise DemoError(f"{path.name} begins with the columns {', '.join(map(str, header))}")
        with closing(source.rows(events)) as theirs:
            compared = compare_rows(ours, theirs, events.columns)
    if compared != counted:
        raise DemoError(f"{path.name} holds {compared:,} rows, count(*) in the source says {counted:,}")
    return Compared(source_rows=counted, rows=compared, cells=compared * len(events.columns))


def compare_rows(ours: Iterable[str], theirs: Iterable[Row], columns: Sequence[str]) -> int:
    """How many rows there are, when all are equal. Raises DemoError that names row, column and both values."""
    number = 0
    for number, (record, their) in enumerate(zip_longest(ours, theirs), start=1):
        if record is None or their is None:
            raise DemoError(f"only {'the source' if record is None else 'the file'} has a row {number:,}")
        # Writing a row is quicker than reading one; where another hand would have quoted otherwise, the cells decide.
        if record != _written(their) and (mine := cells(record)) != list(their):
            raise DemoError(_difference(number, mine, their, columns))
    return number


def records(file: TextIO) -> Iterator[str]:
    """Rows of RFC 4180 text as they stand, the header first. Lines end in LF alone: a CR is data."""
    record = ""
    for line in file:
        record += line
        # Quotes stand around fields and doubled inside them, so they are even in number where a record is whole.
        if record.count('"') % 2 == 0:
            yield record.removesuffix("\n")
            record = ""
    if record:
        raise DemoError("the file ends inside a quoted field")


def cells(record: str) -> list[str | None]:
    """The fields of a record; None is NULL. Raises DemoError when it is not well-formed."""
    fields = _FIELD.findall(record)
    if sum(map(len, fields)) + len(fields) - 1 != len(record):
        raise DemoError(f"not well-formed CSV: {_shown(record)}")
    return [_unquoted(field) for field in fields]


def _unquoted(field: str) -> str | None:
    if field[:1] == '"':
        return field[1:-1].replace('""', '"')
    return field or None


def _written(row: Row) -> str:
    return ",".join(["" if cell is None else _quoted(cell) for cell in row])


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if cell == "" or _SPECIAL.search(cell) else cell


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
