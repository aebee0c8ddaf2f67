"""`tenure demo`: start everything, show one export, stop everything."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from tenure.cli.demo.run import run_demo
from tenure.cli.demo.running import DemoError, Holder, RunningTenure
from tenure.cli.demo.steps import Steps
from tenure.cli.installation import Plan, RunningInstallation, running_installation
from tenure.cli.sample import SampleFacts
from tenure.core.ids import JobId, TenantId
from tenure.core.run import RunRecord
from tenure.wiring.assemble import look_up_job, look_up_owner

CRASH_LEASE_SECONDS = 5.0
"""Short, so that nobody waits long for the takeover; an installation's default is minutes."""


@click.command
@click.option("--crash", is_flag=True, help="Kill the worker in the middle of its export; another one finishes it.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".tenure/demo"),
    show_default=True,
    help="Where the demo keeps its database and files.",
)
def demo(crash: bool, data_dir: Path) -> None:  # noqa: FBT001  click's way
    """Show a whole export on sample data, then stop everything."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(highlight=False)
    steps = Steps(console)
    plan = Plan(sample=True, data_dir=data_dir, lease_seconds=CRASH_LEASE_SECONDS if crash else None)
    with ExitStack() as stack:
        with steps.step("Tenure starts: PostgreSQL, the API, four workers"):
            running = stack.enter_context(
                running_installation(plan, _demo_environ(), say=lambda text: steps.fact("", text))
            )
        if running.sample is None:
            raise DemoError("the demo runs on the sample product only")
        run_demo(_tenure(running, running.sample), crash=crash, console=console, steps=steps)


def _demo_environ() -> dict[str, str]:
    """The demo runs on its own settings, whatever a shell was prepared for."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("TENURE_") or name == "TENURE_PG_BIN"
    }


def _tenure(running: RunningInstallation, sample: SampleFacts) -> RunningTenure:
    tenant_id = TenantId(running.keys.tenant_id)

    def holder_of(job_id: JobId) -> Holder | None:
        owner = asyncio.run(look_up_owner(running.settings, tenant_id, job_id))
        if owner is None:
            return None
        return Holder(pid=owner.pid, attempt=owner.attempt, lease_seconds_left=owner.lease_seconds_left)

    def runs_of(job_id: JobId) -> Sequence[RunRecord]:
        found = asyncio.run(look_up_job(running.settings, tenant_id, job_id))
        return found[1] if found is not None else ()

    return RunningTenure(
        api_url=running.installation.api_url,
        tenant_id=tenant_id,
        tenant_key=running.keys.tenant,
        data_dir=running.settings.data_dir,
        sample=sample,
        workers=running.installation.worker_pids,
        holder_of=holder_of,
        runs_of=runs_of,
        kill_worker=lambda pid: os.kill(pid, signal.SIGKILL),
    )
