"""`tenure verify`: check a package offline."""

import sys
from pathlib import Path

import click

from tenure.cli.options import json_option


@click.command
@json_option
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def verify(path: Path, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Check the package in a folder against its manifest: files, sizes, SHA-256 and rows. Exit 0: all is well."""
    from tenure.exports.verify import verify_package  # noqa: PLC0415

    report = verify_package(path)
    if as_json:
        import msgspec  # noqa: PLC0415

        click.echo(msgspec.json.encode(report))
    else:
        for finding in report.findings:
            click.echo(f"{finding.file}: {finding.problem}")
        total = f"{report.files} files, {report.rows} rows, {report.bytes} bytes, manifest {report.manifest_sha256}"
        click.echo(f"ok: {total}" if report.ok else f"not ok: {len(report.findings)} findings; {total}")
    sys.exit(0 if report.ok else 1)
