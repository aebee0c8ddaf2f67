"""What the demo needs of a running Tenure. Customers' part goes over HTTP; the rest is what an operator sees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from tenure.cli.sample import SampleFacts
from tenure.core.ids import JobId, TenantId
from tenure.core.run import RunRecord


class DemoError(click.ClickException):
    """The demo did not show what it promises; the message is a plain sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The worker that runs an export now, and how long it may go on without a heartbeat."""

    pid: int
    attempt: int
    lease_seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTenure:
    """API and workers are up, with the datasets of `sample.toml` over the sample's database."""

    api_url: str
    """Without a slash at the end."""
    tenant_id: TenantId
    tenant_key: str = field(repr=False)
    """May read and execute exports of `tenant_id`."""
    data_dir: Path
    sample: SampleFacts
    workers: Callable[[], Sequence[int]]
    """Process ids of the workers that are alive."""
    holder_of: Callable[[JobId], Holder | None]
    """None while nobody runs the export."""
    runs_of: Callable[[JobId], Sequence[RunRecord]]
    """The recorded runs, by attempt."""
    kill_worker: Callable[[int], None]
    """SIGKILL, at once and without asking the worker anything."""
