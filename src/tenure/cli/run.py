"""`tenure api`, `tenure worker`, `tenure migrate`: the parts, for installations that run them one by one."""

import asyncio
import os
import sys
from pathlib import Path

import click

from tenure.cli.options import config_option, load_settings
from tenure.engine.isolation.parent import die_with_parent

LOG_LEVELS = click.Choice(["debug", "info", "warning", "error"])
log_option = click.option("--log-level", type=LOG_LEVELS, default="info", show_default=True)
parent_option = click.option("--parent", type=int, default=None, hidden=True)


@click.command
@config_option
@log_option
@parent_option
@click.option("--host", default=None, help="Address to listen on.")
@click.option("--port", type=int, default=None, help="Port to listen on.")
def api(config: Path | None, log_level: str, parent: int | None, host: str | None, port: int | None) -> None:
    """Run the HTTP API until SIGINT or SIGTERM."""
    _begin(log_level, parent)
    from tenure.wiring.serve import serve_api  # noqa: PLC0415  the web framework, only where it is served

    asyncio.run(serve_api(load_settings(config, api__host=host, api__port=port)))


@click.command
@config_option
@log_option
@parent_option
@click.option("--slots", type=int, default=None, help="Jobs to run at a time.")
@click.option("--queue", "queues", multiple=True, help="Queue to take jobs from; may be repeated. Default: all.")
def worker(config: Path | None, log_level: str, parent: int | None, slots: int | None, queues: tuple[str, ...]) -> None:
    """Run a worker until SIGINT or SIGTERM; a second signal hands running jobs back at once."""
    _begin(log_level, parent)
    from tenure.wiring.serve import run_worker  # noqa: PLC0415

    if config is not None:
        os.environ["TENURE_CONFIG"] = str(config.absolute())  # the worker's child processes read the same file
    asyncio.run(run_worker(load_settings(config, worker__slots=slots, worker__queues=list(queues) or None)))


@click.command
@config_option
def migrate(config: Path | None) -> None:
    """Bring the database schema up to date. Safe to run at any time, also twice at once."""
    from tenure.store import migrate as migrations  # noqa: PLC0415
    from tenure.wiring.assemble import database_settings  # noqa: PLC0415

    applied = asyncio.run(migrations.migrate(database_settings(load_settings(config))))
    for migration in applied:
        click.echo(f"applied {migration.version:04d} {migration.name}")
    click.echo(f"ok: schema version {len(migrations.load_migrations())}")


def _begin(log_level: str, parent: int | None) -> None:
    from tenure.wiring.facts import configure_logging  # noqa: PLC0415

    if parent is not None and not die_with_parent(parent):
        sys.exit(1)
    configure_logging(log_level)
