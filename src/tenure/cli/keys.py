"""`tenure keys`: make API keys and show what a tenant verifies webhooks with."""

import asyncio
from pathlib import Path

import click

from tenure.cli.options import config_option, json_option, load_settings
from tenure.core import limits
from tenure.core.ids import TenantId


@click.group
def keys() -> None:
    """Make API keys."""


@keys.command
@config_option
@json_option
@click.option("--tenant", default=None, help="Tenant the key is for. Without it: an operator's key.")
@click.option("--name", default="made on the command line", show_default=True, help="What the key is for.")
def create(config: Path | None, as_json: bool, tenant: str | None, name: str) -> None:  # noqa: FBT001  click's way
    """Make a key. It is shown once and cannot be shown again."""
    from tenure.store.database import Database  # noqa: PLC0415
    from tenure.wiring import assemble  # noqa: PLC0415

    tenant_id = None if tenant is None else _tenant_id(tenant)
    settings = load_settings(config)

    async def issue() -> assemble.IssuedKey:
        async with Database(assemble.database_settings(settings)) as database:
            return await assemble.KeyCabinet(database=database).issue(tenant_id, name=name)

    issued = asyncio.run(issue())
    if as_json:
        import msgspec  # noqa: PLC0415

        click.echo(msgspec.json.encode({"id": issued.key_id, "key": issued.text, "tenant": tenant}))
    else:
        click.echo(issued.text)
        click.echo("Keep it now: it cannot be shown again.", err=True)


@keys.command(name="webhook-secret")
@config_option
@click.argument("tenant")
def webhook_secret(config: Path | None, tenant: str) -> None:
    """Show the secret a tenant verifies webhook signatures with (Standard Webhooks, `whsec_`)."""
    from tenure.exports.deliver import webhook_secret as derive  # noqa: PLC0415
    from tenure.wiring.assemble import link_keys  # noqa: PLC0415

    click.echo(derive(link_keys(load_settings(config))[0].secret, _tenant_id(tenant)))


def _tenant_id(text: str) -> TenantId:
    if not 1 <= len(text) <= limits.TENANT_ID_CHARS_MAX or not all(char.isalnum() or char in "._-:" for char in text):
        raise click.BadParameter(
            f"1 to {limits.TENANT_ID_CHARS_MAX} letters, digits, '.', '_', '-' or ':'", param_hint="tenant"
        )
    return TenantId(text)
