"""What surrounds the CSV text that a source renders: the dialect's rules and the header line."""

from collections.abc import Sequence

from tenure.core.errors import FieldProblem, InvalidSettingsError
from tenure.core.export import Compression, ExportSettings
from tenure.core.manifest import Dialect

MEDIA_TYPE_CSV = "text/csv; charset=utf-8"
MEDIA_TYPE_GZIP = "application/gzip"

_DELIMITERS = frozenset("\t!#$%&*+,-./:;<=>?@^_|~")
"""One ASCII byte that is no letter, digit, quote, backslash, bracket, space or line end."""


def csv_dialect(settings: ExportSettings) -> Dialect:
    """Dialect of a tenant's files.

    Lines end in LF, as PostgreSQL writes them, where RFC 4180 says CRLF: rewriting every line would cost the fast path
    and every reader takes both. Raises InvalidSettingsError for a delimiter that cannot be told from data.
    """
    if settings.csv_delimiter not in _DELIMITERS:
        raise InvalidSettingsError(
            FieldProblem(pointer="/csv_delimiter", detail="must be a tab or one ASCII punctuation mark but no quote"),
        )
    return Dialect(delimiter=settings.csv_delimiter, header=settings.csv_header)


def header_line(columns: Sequence[str], dialect: Dialect) -> bytes:
    """First line of a file, or nothing where the dialect has no header. Names keep their order and spelling."""
    if not dialect.header:
        return b""
    line = dialect.delimiter.join(_quoted(name, dialect) for name in columns) + dialect.line_terminator
    return line.encode(dialect.encoding)


def file_name(dataset: str, compression: Compression) -> str:
    match compression:
        case Compression.NONE:
            return f"{dataset}.csv"
        case Compression.GZIP:
            return f"{dataset}.csv.gz"


def media_type(compression: Compression) -> str:
    """Media type of the stored bytes: compression is part of the type, never a Content-Encoding."""
    match compression:
        case Compression.NONE:
            return MEDIA_TYPE_CSV
        case Compression.GZIP:
            return MEDIA_TYPE_GZIP


def _quoted(text: str, dialect: Dialect) -> str:
    special = (dialect.delimiter, dialect.quote, "\n", "\r")
    if text and text == text.strip() and not any(mark in text for mark in special):
        return text
    return dialect.quote + text.replace(dialect.quote, dialect.quote * 2) + dialect.quote
