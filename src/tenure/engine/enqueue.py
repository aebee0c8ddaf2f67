"""Put jobs in, inside the caller's transaction."""

from collections.abc import Sequence
from datetime import datetime

from uuid_utils.compat import uuid7

from tenure.core import limits
from tenure.core.errors import FieldProblem, InvalidInputError
from tenure.core.ids import JobId
from tenure.core.job import NewJob
from tenure.core.lifecycle import JobState
from tenure.store import doorbells, jobs
from tenure.store.database import Connection


def new_job_id() -> JobId:
    """A UUIDv7: sorts by time, so that neighbours in time are neighbours in the index."""
    return JobId(uuid7())


async def enqueue(
    connection: Connection, new_jobs: Sequence[NewJob], *, now: datetime | None = None
) -> dict[JobId, JobState]:
    """Insert jobs and ring their queues once, at commit. The ids returned are those that were new.

    Raises `InvalidInputError` where args are too large; nothing is inserted then.
    """
    too_large = [job for job in new_jobs if len(job.args) > limits.ARGS_BYTES_MAX]
    if too_large:
        detail = f"{len(too_large[0].args)} bytes, at most {limits.ARGS_BYTES_MAX}"
        raise InvalidInputError(FieldProblem(pointer="/args", detail=detail))
    inserted = await jobs.enqueue(connection, new_jobs, now=now)
    for queue in sorted({job.queue for job in new_jobs if inserted.get(job.id) is JobState.QUEUED}):
        await doorbells.ring(connection, queue)
    return inserted
