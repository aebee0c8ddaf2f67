"""Options that several commands share, and the settings they lead to."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tenure.wiring.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=None,
        help="Settings file. Default: TENURE_CONFIG, else tenure.toml in this folder.",
    )(command)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(command)


def load_settings(config: Path | None, **flags: object) -> Settings:
    """Settings of this process; `flags` are dotted names with `__` for the dot, None where not given."""
    return Settings.load(config, os.environ, {name.replace("__", "."): value for name, value in flags.items()})
