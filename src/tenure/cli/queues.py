"""`tenure queues`: see the queues, and change their slots, headroom and pause."""

from pathlib import Path
from typing import Any

import click

from tenure.cli.operator import ACTOR, LimitType, ask, count_text, limit_text, table
from tenure.cli.options import config_option, json_option
from tenure.core import limits
from tenure.core.tuning import QueueChanges, QueueSettings, QueueView


@click.group
def queues() -> None:
    """See the queues; change their slots, headroom and pause."""


@queues.command(name="list")
@config_option
@json_option
def list_queues(config: Path | None, as_json: bool) -> None:  # noqa: FBT001  click's way
    """List the queues: settings, what runs, what waits, workers."""
    import msgspec  # noqa: PLC0415

    views = ask(config, lambda operator: operator.list_queues())
    click.echo(msgspec.json.encode(views) if as_json else _text(views))


@queues.command(name="set")
@config_option
@json_option
@click.argument("queue")
@click.option("--slots", type=LimitType(), help="Jobs at a time, over all workers; or 'unlimited'.")
@click.option("--headroom", type=int, help="Slots that are never lent beyond caps.")
@click.option("--pause/--resume", "paused", default=None, help="Start nothing of this queue, or go on.")
def set_queue(config: Path | None, as_json: bool, queue: str, **changes: Any) -> None:  # noqa: FBT001  click's way
    """Change a queue. It acts at once; running jobs go on."""
    import msgspec  # noqa: PLC0415

    wanted = QueueChanges(**changes)
    settings = ask(config, lambda operator: operator.tune_queue(ACTOR, queue, wanted))
    click.echo(msgspec.json.encode(settings) if as_json else _settings_text(settings))


def _text(views: tuple[QueueView, ...]) -> str:
    if not views:
        return "No queue yet: a queue appears when the first worker takes jobs from it."
    rows = [
        (
            view.settings.queue,
            limit_text(view.settings.slots),
            str(view.settings.headroom),
            "yes" if view.settings.paused else "no",
            str(view.running),
            count_text(view.waiting, limits.WAITING_COUNT_MAX),
            str(view.workers),
            str(view.worker_slots),
        )
        for view in views
    ]
    head = ("queue", "slots", "headroom", "paused", "running", "waiting", "workers", "their slots")
    return table(head, rows)


def _settings_text(settings: QueueSettings) -> str:
    paused = "paused" if settings.paused else "not paused"
    return f"{settings.queue}: slots {limit_text(settings.slots)}, headroom {settings.headroom}, {paused}"
