"""`tenure datasets`: what may be exported."""

from pathlib import Path

import click

from tenure.cli.options import config_option, json_option, load_settings


@click.group
def datasets() -> None:
    """Show what may be exported."""


@datasets.command(name="list")
@config_option
@json_option
def list_datasets(config: Path | None, as_json: bool) -> None:  # noqa: FBT001  click's way
    """List the catalogue: datasets, columns and the filters callers may use."""
    catalogue = load_settings(config).catalogue
    if as_json:
        import msgspec  # noqa: PLC0415

        click.echo(msgspec.json.encode(list(catalogue.datasets.values())))
        return
    if not catalogue.datasets:
        click.echo("No datasets: there is no tenure.toml here, or it declares none. `tenure up` serves a sample then.")
    for dataset in catalogue.datasets.values():
        click.echo(f"{dataset.name}  {dataset.description}".rstrip())
        click.echo(f"  columns  {', '.join(dataset.column_names())}")
        for column, operators in sorted(dataset.filters.items()):
            click.echo(f"  filter   {column}: {', '.join(sorted(operators))}")
