"""What the sample's own database says: the independent side of every comparison the demo makes.

Another role, another connection and SQL written here; nothing of the product is used. Rows come by COPY's text format,
where exports use its CSV format.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tenure.core.ids import JobId, TenantId

Row = Sequence[str | None]

SESSION = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 -c extra_float_digits=1 -c client_encoding=UTF8"
ROWS_SENT = """
SELECT coalesce(max(copying.tuples_processed), 0)
  FROM pg_stat_progress_copy AS copying JOIN pg_stat_activity AS activity USING (pid)
 WHERE activity.application_name LIKE %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events that should be in a file: one tenant's, from one moment to before another, ordered by id."""

    tenant_id: TenantId
    columns: tuple[str, ...]
    occurred_from: str
    occurred_to: str


class Source:
    """An open view of the sample's database."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def count(self, events: Events) -> int:
        query = sql.SQL("SELECT count(*) FROM app.events WHERE {}").format(_condition(events))
        return self._number(query)

    def rows(self, events: Events) -> Generator[Row]:
        """Every cell as PostgreSQL's own text; None is NULL. Close it, or read it to its end."""
        query = sql.SQL("COPY (SELECT {} FROM app.events WHERE {} ORDER BY id) TO STDOUT").format(
            sql.SQL(", ").join(map(sql.Identifier, events.columns)), _condition(events)
        )
        with self._connection.cursor().copy(query) as copy:
            yield from copy.rows()

    def rows_sent(self, export_id: JobId) -> int:
        """Rows that have left for this export so far, as the server itself counts them; 0 while none do."""
        return self._number(ROWS_SENT, f"tenure export {export_id} %")

    def _number(self, query: str | sql.Composed, *values: object) -> int:
        row = self._connection.execute(query, values or None).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def open_source(owner_url: str, *, snapshot: bool = False) -> Iterator[Source]:
    """With `snapshot` everything is read in one view; without, every statement sees the newest."""
    with psycopg.connect(owner_url, options=SESSION, autocommit=not snapshot) as connection:
        if snapshot:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield Source(connection)


def _condition(events: Events) -> sql.Composed:
    return sql.SQL("account_id = {} AND occurred_at >= {} AND occurred_at < {}").format(
        events.tenant_id, events.occurred_from, events.occurred_to
    )
