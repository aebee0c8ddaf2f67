"""`tenure tenants`: see the tenants of a queue, and change their weight, cap, ceiling and pause."""

from pathlib import Path
from typing import Any

import click

from tenure.cli.operator import ACTOR, LimitType, ask, count_text, limit_text, table
from tenure.cli.options import config_option, json_option
from tenure.core import limits
from tenure.core.durations import spoken_duration
from tenure.core.ids import TenantId
from tenure.core.tuning import LaneChanges, LaneSettings, LaneView

queue_option = click.option("--queue", required=True, help="The queue.")


@click.group
def tenants() -> None:
    """See the tenants of a queue; change their weight, cap, ceiling and pause."""


@tenants.command(name="list")
@config_option
@json_option
@queue_option
@click.option(
    "--limit",
    type=click.IntRange(1, limits.LIST_COUNT_MAX),
    default=limits.LIST_COUNT_MAX,
    show_default=True,
    help="How many.",
)
@click.option("--after", default=None, help="Begin behind this tenant.")
def list_tenants(config: Path | None, as_json: bool, queue: str, limit: int, after: str | None) -> None:  # noqa: FBT001  click's way
    """List the tenants of a queue by id: settings, what runs, what waits, how far ahead of their turn they are."""
    import msgspec  # noqa: PLC0415

    start = None if after is None else TenantId(after)
    views = ask(config, lambda operator: operator.list_lanes(queue, limit, start))
    click.echo(msgspec.json.encode(views) if as_json else _text(views))
    if len(views) == limit and not as_json:
        click.echo(f"More with --after {views[-1].settings.tenant_id}", err=True)


@tenants.command(name="set")
@config_option
@json_option
@click.argument("tenant")
@queue_option
@click.option("--weight", type=float, help="Share of worker time beside the others: 2 is twice as much as 1.")
@click.option("--cap", type=LimitType(), help="Jobs at a time while others wait; or 'unlimited'.")
@click.option("--ceiling", type=LimitType(), help="Jobs at a time at most, whatever is idle; or 'unlimited'.")
@click.option("--pause/--resume", "paused", default=None, help="Start nothing of this tenant here, or go on.")
def set_tenant(config: Path | None, as_json: bool, tenant: str, queue: str, **changes: Any) -> None:  # noqa: FBT001  click's way
    """Change a tenant in a queue. It acts at once, on what waits already too; running jobs go on."""
    import msgspec  # noqa: PLC0415

    wanted = LaneChanges(**changes)
    settings = ask(config, lambda operator: operator.tune_lane(ACTOR, queue, TenantId(tenant), wanted))
    click.echo(msgspec.json.encode(settings) if as_json else _settings_text(settings))


def _text(views: tuple[LaneView, ...]) -> str:
    if not views:
        return "No tenant here: a tenant appears with its first job, or when it is set."
    rows = [
        (
            view.settings.tenant_id,
            f"{view.settings.weight:g}",
            limit_text(view.settings.cap),
            limit_text(view.settings.ceiling),
            "yes" if view.settings.paused else "no",
            str(view.running),
            count_text(view.waiting, limits.WAITING_COUNT_MAX),
            _lead_text(view.lead_seconds),
        )
        for view in views
    ]
    return table(("tenant", "weight", "cap", "ceiling", "paused", "running", "waiting", "ahead by"), rows)


def _lead_text(seconds: float) -> str:
    return f"-{spoken_duration(-seconds)}" if seconds < 0 else spoken_duration(seconds)


def _settings_text(settings: LaneSettings) -> str:
    paused = "paused" if settings.paused else "not paused"
    limits_text = f"cap {limit_text(settings.cap)}, ceiling {limit_text(settings.ceiling)}"
    return f"{settings.tenant_id} in {settings.queue}: weight {settings.weight:g}, {limits_text}, {paused}"
