"""`tenure fairness`: how worker time was shared."""

from pathlib import Path

import click

from tenure.cli.operator import ask, table
from tenure.cli.options import config_option, json_option
from tenure.core.durations import read_duration, spoken_duration
from tenure.core.shares import FairnessReport, QueueShares, TenantShare

NOTE = "A tenant that had work only for a part of this time was owed less than its share due."


@click.command
@config_option
@json_option
@click.option("--since", default="1h", show_default=True, help="How far back: 30m, 1h, 7d.")
@click.option("--queue", default=None, help="Only this queue.")
def fairness(config: Path | None, as_json: bool, since: str, queue: str | None) -> None:  # noqa: FBT001  click's way
    """Show how worker time was shared: worker-seconds, shares, waits and Jain's index, by queue and tenant."""
    import msgspec  # noqa: PLC0415

    seconds = read_duration(since)
    if seconds is None:
        raise click.BadParameter("a duration such as 30m, 1h or 7d", param_hint="--since")
    report = ask(config, lambda operator: operator.fairness(queue, seconds))
    click.echo(msgspec.json.encode(report) if as_json else _text(report))


def _text(report: FairnessReport) -> str:
    if not report.queues:
        return "Nothing ran or waited in this time."
    parts = [_queue_text(shares) for shares in report.queues]
    notes = [NOTE] if report.is_complete else [NOTE, "There are more tenants: the smallest are left out."]
    return "\n\n".join([*parts, "\n".join(notes)])


def _queue_text(shares: QueueShares) -> str:
    time = spoken_duration(shares.worker_seconds)
    title = f"{shares.queue}: {time} of worker time, Jain's index {shares.jain_index:.3f}"
    head = ("tenant", "weight", "worker time", "share", "due", "runs", "wait p50", "p95", "max", "waits now")
    return f"{title}\n{table(head, [_row(tenant) for tenant in shares.tenants])}"


def _row(tenant: TenantShare) -> tuple[str, ...]:
    used = tenant.used
    waits = (used.wait_seconds_p50, used.wait_seconds_p95, used.wait_seconds_max, used.first_waits_seconds)
    return (
        used.tenant_id,
        f"{used.weight:g}",
        spoken_duration(used.worker_seconds),
        f"{tenant.share:.1%}",
        f"{tenant.share_due:.1%}",
        str(used.runs + used.running),
        *("-" if seconds is None else spoken_duration(seconds) for seconds in waits),
    )
