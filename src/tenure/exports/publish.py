"""Settle an export with its job, in one transaction: before it nothing of the package is visible, after it everything.

The engine calls `settle_export` for every end of an export's job, whoever brought it about: the worker, the reaper, or
a cancel.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

import msgspec

from tenure.core.errors import (
    FormatCannotHoldError,
    InvalidRequestError,
    PackageMismatchError,
    QueryTimeoutError,
    RowLimitExceededError,
    SourceQueryError,
    SourceUnavailableError,
)
from tenure.core.export import Channel, Delivery, ExportFailure, ExportOrder, ExportStatus, Package
from tenure.core.job import JobEnd, NewJob
from tenure.core.lifecycle import JobState
from tenure.engine.enqueue import enqueue, new_job_id
from tenure.exports.deliver import DELIVERY_KIND, DELIVERY_LEASE_SECONDS, DELIVERY_QUEUE, DELIVERY_RETRY, Notice
from tenure.store import deliveries, exports
from tenure.store.database import Connection
from tenure.store.exports import SettledExport

CUSTOMER_CODES = frozenset(
    error.code
    for error in (
        FormatCannotHoldError,
        InvalidRequestError,
        PackageMismatchError,
        QueryTimeoutError,
        RowLimitExceededError,
        SourceQueryError,
        SourceUnavailableError,
    )
)
"""Errors whose messages are written for the customer."""
UNKNOWN_FAILURE = ExportFailure(code="internal", summary="The export could not be made.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How an export ended, for the customer."""

    status: ExportStatus
    package: Package | None = None
    failure: ExportFailure | None = None


async def settle_export(connection: Connection, end: JobEnd) -> None:
    """Record the export's end, publish its package, and enqueue its notifications."""
    ended = _read(end)
    if ended is None:
        return
    settled = await exports.settle(connection, end.tenant_id, end.job_id, ended.status, ended.failure)
    if settled is None:
        return
    expires_at = None
    if ended.package is not None:
        expires_at = await exports.publish(connection, end.tenant_id, end.job_id, ended.package, settled)
    await _notify(connection, end, settled.order, _notice(end, settled, ended, expires_at))


def _read(end: JobEnd) -> _Ended | None:
    """What a job's state means for its export; None while it goes on."""
    match end.state:
        case JobState.SUCCEEDED:
            package = msgspec.json.decode(end.result or b"", type=Package)
            return _Ended(status=ExportStatus.SUCCEEDED, package=package)
        case JobState.DEAD | JobState.QUARANTINED:
            return _Ended(status=ExportStatus.FAILED, failure=_failure(end))
        case JobState.CANCELLED:
            return _Ended(status=ExportStatus.CANCELLED)
        case JobState.SCHEDULED | JobState.QUEUED | JobState.RUNNING | JobState.RETRY_WAIT:
            return None
        case _:
            assert_never(end.state)


def _failure(end: JobEnd) -> ExportFailure:
    if end.state is JobState.QUARANTINED:
        summary = "The export ended its worker several times; an operator must look at it."
        return ExportFailure(code="quarantined", summary=summary, phase=end.error_phase)
    if end.error_code is None:
        return UNKNOWN_FAILURE
    # Words written for customers pass; anything else may name paths, hosts or values, and stays in the run record.
    words = end.error_message if end.error_code in CUSTOMER_CODES else None
    return ExportFailure(code=end.error_code, summary=words or UNKNOWN_FAILURE.summary, phase=end.error_phase)


def _notice(end: JobEnd, settled: SettledExport, ended: _Ended, expires_at: datetime | None) -> Notice:
    package = ended.package
    only_file = package.only_file if package is not None else None
    return Notice(
        export_id=end.job_id,
        tenant_id=end.tenant_id,
        status=ended.status,
        finished_at=settled.finished_at,
        expires_at=expires_at,
        link_seconds=settled.order.spec.link_seconds,
        file=only_file.name if only_file is not None else None,
        rows=package.rows if package is not None else None,
        bytes=package.bytes if package is not None else None,
        manifest_sha256=package.manifest_sha256 if package is not None else None,
        failure=ended.failure,
    )


async def _notify(connection: Connection, end: JobEnd, order: ExportOrder, notice: Notice) -> None:
    for delivery in order.spec.deliveries:
        if delivery.channel is Channel.WEBHOOK:
            await _enqueue_delivery(connection, end, delivery, notice)


async def _enqueue_delivery(connection: Connection, end: JobEnd, delivery: Delivery, notice: Notice) -> None:
    delivery_id = new_job_id()
    await deliveries.insert(connection, delivery_id, end.job_id, end.tenant_id, delivery)
    job = NewJob(
        id=delivery_id,
        tenant_id=end.tenant_id,
        queue=DELIVERY_QUEUE,
        kind=DELIVERY_KIND,
        args=msgspec.json.encode({"url": delivery.url, "notice": notice}),
        max_attempts=DELIVERY_RETRY.max_attempts,
        max_crashes=DELIVERY_RETRY.max_attempts,
        lease_seconds=DELIVERY_LEASE_SECONDS,
    )
    await enqueue(connection, [job])
