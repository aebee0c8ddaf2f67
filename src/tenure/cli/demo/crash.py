"""Kills the worker while it reads, and waits until another one takes the export over.

The moment is chosen by what the source itself says: PostgreSQL counts the rows of a running COPY. Nothing in the
product is slowed down or told about it.
"""

import time

from tenure.api.documents import UNFINISHED
from tenure.cli.demo.client import TenantClient
from tenure.cli.demo.running import DemoError, Holder, RunningTenure
from tenure.cli.demo.source import open_source
from tenure.cli.demo.steps import Steps, seconds_text
from tenure.core.ids import JobId

KILL_AFTER_ROWS = 20_000
POLL_SECONDS = 0.01
TAKEOVER_POLL_SECONDS = 0.1
CLAIM_LIMIT_SECONDS = 60.0
TAKEOVER_LIMIT_SECONDS = 60.0
"""Counted from the end of the lease."""


def kill_while_reading(running: RunningTenure, client: TenantClient, export_id: JobId, steps: Steps) -> Holder | None:
    """The worker that was killed; None when the export was over before that."""
    deadline = time.monotonic() + CLAIM_LIMIT_SECONDS
    with open_source(running.sample.owner_url) as source:
        while time.monotonic() < deadline:
            rows = source.rows_sent(export_id)
            holder = running.holder_of(export_id) if rows >= KILL_AFTER_ROWS else None
            if holder is not None:
                running.kill_worker(holder.pid)
                _tell(running, holder, rows, steps)
                return holder
            if client.show(export_id).status not in UNFINISHED:
                return None
            time.sleep(POLL_SECONDS)
    raise DemoError(f"no worker began to read export {export_id} within {CLAIM_LIMIT_SECONDS:.0f} s")


def await_takeover(running: RunningTenure, export_id: JobId, killed: Holder, steps: Steps) -> Holder:
    """The worker that runs the next attempt. Raises DemoError when there is none in time."""
    started = time.monotonic()
    lapse = started + killed.lease_seconds_left
    with steps.waiting() as tell:
        while time.monotonic() < lapse + TAKEOVER_LIMIT_SECONDS:
            holder = running.holder_of(export_id)
            if holder is not None and holder.attempt > killed.attempt:
                steps.fact("takeover", f"by worker {holder.pid}, {seconds_text(time.monotonic() - started)} later")
                return holder
            tell(_countdown(lapse - time.monotonic()))
            time.sleep(TAKEOVER_POLL_SECONDS)
    raise DemoError(f"no worker took export {export_id} over within {TAKEOVER_LIMIT_SECONDS:.0f} s of the lease's end")


def _tell(running: RunningTenure, holder: Holder, rows: int, steps: Steps) -> None:
    others = len([pid for pid in running.workers() if pid != holder.pid])
    steps.fact("kill -9", f"worker {holder.pid}, in attempt {holder.attempt}, {rows:,} rows into the file")
    steps.fact(
        "lease",
        f"ends in {seconds_text(holder.lease_seconds_left)}; until then nobody may touch the export, "
        f"then one of the {others} other workers will",
    )


def _countdown(seconds: float) -> str:
    return f"lease ends in {seconds:.1f} s" if seconds > 0 else "lease ended, waiting for a worker"
