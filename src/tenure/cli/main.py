"""`tenure`: one entry, commands loaded when they are used."""

import importlib
import sys
from typing import NoReturn

import click

from tenure import __version__

COMMANDS = {
    "api": ("tenure.cli.run", "Run the HTTP API."),
    "config": ("tenure.cli.config", "Check the settings."),
    "datasets": ("tenure.cli.datasets", "Show what may be exported."),
    "demo": ("tenure.cli.demo.command", "Show a whole export on sample data, then stop everything."),
    "fairness": ("tenure.cli.fairness", "Show how worker time was shared."),
    "jobs": ("tenure.cli.jobs", "Look at one job and its runs."),
    "keys": ("tenure.cli.keys", "Make API keys."),
    "simulate": ("tenure.cli.simulate", "Play a described load through the fairness policy."),
    "migrate": ("tenure.cli.run", "Bring the database schema up to date."),
    "queues": ("tenure.cli.queues", "See the queues; change slots, headroom and pause."),
    "tenants": ("tenure.cli.tenants", "See a queue's tenants; change weight, cap, ceiling and pause."),
    "up": ("tenure.cli.up", "Run everything on this machine: PostgreSQL, API, workers."),
    "verify": ("tenure.cli.verify", "Check a downloaded package, offline."),
    "why": ("tenure.cli.why", "Tell why a job is where it is."),
    "worker": ("tenure.cli.run", "Run a worker process."),
}
EXIT_FAILURE = 1
EXIT_USAGE = 2


class LazyCommands(click.Group):
    """Imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tenure")
def tenure() -> None:
    """Self-hosted data exports for multi-tenant products, on a fair job engine in PostgreSQL."""


def main() -> NoReturn:
    """Run a command; a refusal is one clear line and an exit code, never a traceback."""
    try:
        tenure.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except Exception as error:
        _refuse(error)
        raise
    sys.exit(0)


def _refuse(error: Exception) -> None:
    from tenure.core.errors import InvalidInputError, TenureError  # noqa: PLC0415  only when something went wrong

    if not isinstance(error, TenureError):
        return
    if isinstance(error, InvalidInputError):
        click.echo(f"error: {error.title.lower()}", err=True)
        for problem in error.problems:
            click.echo(f"  {problem.pointer}: {problem.detail}", err=True)
    else:
        click.echo(f"error: {error}", err=True)
    click.echo(f"hint: {error.what_to_do}", err=True)
    sys.exit(EXIT_USAGE if isinstance(error, InvalidInputError) else EXIT_FAILURE)


if __name__ == "__main__":
    main()
