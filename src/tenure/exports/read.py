"""Reads one planned file's rows from its source as the bytes of a CSV file."""

from tenure.core.errors import PackageMismatchError
from tenure.core.manifest import Dialect
from tenure.encoders.csv import header_line
from tenure.exports.plan import PlannedFile
from tenure.sources.postgres import PostgresSource
from tenure.sources.request import Emit


def read_file(source: PostgresSource, planned: PlannedFile, dialect: Dialect, emit: Emit) -> None:
    """Emit the header, then the rows. Raises PackageMismatchError unless they are as many as were counted.

    Count and rows come from one view, so a difference means that the dataset's query answers by more than its data.
    """
    emit(bytearray(header_line([column.name for column in planned.columns], dialect)), 0)
    rows = source.copy_csv(planned.request, dialect, emit)
    if rows != planned.rows:
        raise PackageMismatchError(
            f'dataset "{planned.request.dataset.name}" gave {rows} rows where {planned.rows} were counted in the same '
            "view; its query must give the same rows each time it is run",
            phase="read",
        )
