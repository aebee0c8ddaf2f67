"""Was it fair? Worker time by queue and tenant in the last hours, from run records."""

from dataclasses import replace

from tenure.core import limits
from tenure.core.errors import FieldProblem, InvalidInputError, NotFoundError
from tenure.core.shares import FairnessReport, Used, queue_shares
from tenure.core.tuning import is_name
from tenure.store import queues, report, why
from tenure.store.database import Connection

WINDOW_SECONDS_MAX = 31 * 86_400


async def fairness_report(connection: Connection, queue: str | None, seconds: float) -> FairnessReport:
    """How the last `seconds` of worker time were shared, in one queue or in all.

    The connection must not be in a transaction. Raises `InvalidInputError` for a window that is not within 31 days,
    `NotFoundError` for an unknown queue.
    """
    if not 1 <= seconds <= WINDOW_SECONDS_MAX:
        raise InvalidInputError(FieldProblem(pointer="since", detail="must be from 1 second to 31 days"))
    if queue is not None and not is_name(queue, limits.QUEUE_NAME_CHARS_MAX):
        raise NotFoundError("queue")
    async with why.snapshot(connection):
        span = await report.window(connection, seconds)
        names = [view.settings.queue for view in await queues.list_queues(connection, queue)]
        if queue is not None and not names:
            raise NotFoundError("queue")
        rows = {(item.queue, item.tenant_id): item for item in await report.used(connection, queue, span)}
        is_complete = len(rows) < limits.SHARE_COUNT_MAX
        for name in names:
            for item in await report.waiting(connection, name, span):
                before = rows.get((name, item.tenant_id), _nothing(name, item))
                rows[name, item.tenant_id] = replace(before, waiting=True, first_waits_seconds=item.first_waits_seconds)
    found = sorted({item.queue for item in rows.values()})
    return FairnessReport(
        since=span.since,
        until=span.until,
        queues=tuple(queue_shares(name, tuple(row for row in rows.values() if row.queue == name)) for name in found),
        is_complete=is_complete,
    )


def _nothing(queue: str, item: report.Waiting) -> Used:
    """A tenant that waits and got nothing at all."""
    return Used(
        queue=queue,
        tenant_id=item.tenant_id,
        weight=item.weight,
        worker_seconds=0.0,
        runs=0,
        running=0,
        waiting=True,
        outcomes={},
        wait_seconds_p50=None,
        wait_seconds_p95=None,
        wait_seconds_max=None,
        first_waits_seconds=item.first_waits_seconds,
    )
