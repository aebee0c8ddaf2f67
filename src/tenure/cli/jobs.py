"""`tenure jobs`: look at one job and its runs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import click

from tenure.cli.options import config_option, json_option, load_settings
from tenure.core.errors import NotFoundError
from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobView
from tenure.core.run import RunRecord


@click.group
def jobs() -> None:
    """Look at one job and its runs."""


@jobs.command
@config_option
@json_option
@click.argument("tenant")
@click.argument("job_id", type=click.UUID)
def show(config: Path | None, as_json: bool, tenant: str, job_id: UUID) -> None:  # noqa: FBT001  click's way
    """Show a tenant's job: its state, its budgets, and every run with its outcome."""
    import msgspec  # noqa: PLC0415

    from tenure.wiring.assemble import look_up_job  # noqa: PLC0415

    found = asyncio.run(look_up_job(load_settings(config), TenantId(tenant), JobId(job_id)))
    if found is None:
        raise NotFoundError("job")
    job, runs = found
    click.echo(msgspec.json.encode({"job": job, "runs": runs}) if as_json else _text(job, runs))


def _text(job: JobView, runs: Sequence[RunRecord]) -> str:
    lines = [
        f"{job.kind} {job.id}",
        f"  state     {job.state}, attempt {job.attempt}",
        f"  failures  {job.failures} of {job.max_attempts}",
        f"  crashes   {job.crashes} of {job.max_crashes}",
        f"  created   {job.created_at:%Y-%m-%d %H:%M:%S %Z}",
    ]
    for run in runs:
        seconds = (run.finished_at - run.claimed_at).total_seconds()
        why = f": {run.error_code}, {run.error_message}" if run.error_code else ""
        lines.append(f"  run {run.attempt}     {run.outcome} after {seconds:.1f} s on {run.host} pid {run.pid}{why}")
    return "\n".join(lines)
