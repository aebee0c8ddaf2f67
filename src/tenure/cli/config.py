"""`tenure config check`: what is wrong with the settings, all of it, before anything is started."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

EXIT_WRONG = 2


@click.group(help="Look at the settings.")
def config() -> None:
    """Group of commands about the settings."""


@config.command(help="Check tenure.toml, the environment and the datasets; exit 2 when something is wrong.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The file to read instead of tenure.toml.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(*, path: Path | None, as_json: bool) -> None:
    # Imported here so that `tenure --help` stays quick.
    import os  # noqa: PLC0415

    from tenure.core.errors import InvalidSettingsError  # noqa: PLC0415
    from tenure.wiring.settings import Settings  # noqa: PLC0415

    try:
        settings = Settings.load(path, os.environ, {})
    except InvalidSettingsError as error:
        _print_problems([{"name": item.pointer, "detail": item.detail} for item in error.problems], as_json=as_json)
        raise SystemExit(EXIT_WRONG) from None
    facts = {
        "file": str(settings.file) if settings.file else None,
        "database": "your own server" if settings.database.url else "embedded",
        "data_dir": str(settings.data_dir),
        "sources": sorted(settings.sources),
        "datasets": list(settings.catalogue.datasets),
    }
    _print_facts(facts, as_json=as_json)


def _print_facts(facts: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        _print_json({"ok": True, **facts})
        return
    click.echo(f"ok: {facts['file'] or 'no tenure.toml, defaults only'}")
    for name in ("database", "data_dir", "sources", "datasets"):
        value = facts[name]
        click.echo(f"    {name}: {(', '.join(value) or 'none') if isinstance(value, list) else value}")


def _print_problems(problems: Sequence[Mapping[str, str]], *, as_json: bool) -> None:
    if as_json:
        _print_json({"ok": False, "problems": problems})
        return
    for problem in problems:
        click.echo(f"{problem['name']}: {problem['detail']}", err=True)
    count = len(problems)
    click.echo(f"{count} {'problem' if count == 1 else 'problems'} in the settings", err=True)


def _print_json(value: object) -> None:
    import json  # noqa: PLC0415

    click.echo(json.dumps(value, indent=2))
