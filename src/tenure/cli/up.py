"""`tenure up`: everything on this machine, until Ctrl-C."""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import click

from tenure.cli.options import config_option


@click.command
@config_option
@click.option("--port", type=click.IntRange(1, 65_535), default=None, help="API port. Default: 8080, or a free one.")
@click.option("--workers", type=click.IntRange(1, 64), default=None, help="Worker processes. Default: 4.")
@click.option("--tenant", default=None, help="Tenant of the first key. Default: the sample's, or 'first-tenant'.")
def up(config: Path | None, port: int | None, workers: int | None, tenant: str | None) -> None:
    """Run PostgreSQL (unless TENURE_DATABASE_URL is set), the API and the workers until Ctrl-C.

    Without a tenure.toml it serves a small sample product, so that the first request works at once.
    """
    from tenure.cli.installation import Plan, running_installation  # noqa: PLC0415  late, so that help is quick

    stopping = threading.Event()
    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop_signal, lambda *_: stopping.set())
    plan = Plan(config=config, port=port, workers=workers, tenant=tenant)
    with running_installation(plan, os.environ, say=_say) as running:
        _say(_welcome(running.facts()))
        while not stopping.wait(0.2):
            running.watch()
        _say("\nStopping: running exports finish or are handed back ...")
    _say("Stopped. Your data stays in " + str(running.settings.data_dir))


def _welcome(facts: Mapping[str, str]) -> str:
    width = max(map(len, facts))
    return "\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in facts.items()) + "\n\nCtrl-C stops it.\n"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
