"""`tenure simulate`: what a load would wait and share, without a database."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.cli.options import json_option

if TYPE_CHECKING:
    from rich.table import Table

    from tenure.simulate.load import Load
    from tenure.simulate.summary import GroupSummary, Summary

LIST = "list"


@click.command
@click.argument("load", required=False, type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option("--scenario", metavar="NAME", help="A load that ships with Tenure; `list` shows them.")
@click.option("--chart", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Draw an SVG file.")
@click.option("--compare", type=click.Choice(["fifo"]), help="Play the same jobs first in, first out, too.")
@json_option
def simulate(
    *, load: Path | None, scenario: str | None, chart: Path | None, compare: str | None, as_json: bool
) -> None:
    """Play the fairness policy over the load that LOAD describes, a TOML file; print waits and shares."""
    if (load is None) == (scenario is None):
        raise click.UsageError("Give either LOAD, a file, or --scenario NAME; `--scenario list` shows the names.")
    if scenario == LIST:
        _list_scenarios()
        return
    from tenure.simulate.compare import PolicyName  # noqa: PLC0415  `tenure --help` stays quick

    described = _read(load, scenario)
    policies = (PolicyName.FAIR, PolicyName(compare)) if compare else (PolicyName.FAIR,)
    summaries = _played(described, policies)
    if as_json:
        _print_json(described, summaries)
    else:
        _print_tables(described, summaries)
    if chart is not None:
        _draw(chart, described, summaries)


def _list_scenarios() -> None:
    from tenure.simulate import scenarios  # noqa: PLC0415

    for name in scenarios.names():
        click.echo(f"{name:32} {scenarios.load_of(name).description}")


def _read(path: Path | None, scenario: str | None) -> "Load":
    from tenure.simulate import scenarios  # noqa: PLC0415
    from tenure.simulate.read import read_load  # noqa: PLC0415

    if path is None:
        if scenario not in scenarios.names():
            raise click.UsageError(f"There is no scenario {scenario!r}. There are: {', '.join(scenarios.names())}.")
        return scenarios.load_of(scenario)
    try:
        return read_load(path.read_text("utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None


def _played(load: "Load", policies: Sequence[str]) -> list["Summary"]:
    """Progress goes to standard error, and only to a terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from tenure.simulate.compare import PolicyName, simulate  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bars = {PolicyName(name): progress.add_task(name, total=1.0) for name in policies}

        def watch(name: PolicyName, part: float) -> None:
            progress.update(bars[name], completed=part)

        return list(simulate(load, tuple(bars), watch))


def _print_tables(load: "Load", summaries: Sequence["Summary"]) -> None:
    from rich.console import Console  # noqa: PLC0415

    from tenure.simulate.chart import time_text  # noqa: PLC0415

    console = Console(highlight=False)
    console.print(f"[bold]{load.name}[/]", f"[dim]{load.description}[/]", sep="\n")
    console.print(
        f"{load.tenant_count:,} tenants, {load.slots:,} slots, {summaries[0].jobs:,} jobs in "
        f"{time_text(load.duration_seconds)}, seed {load.seed}",
        style="dim",
    )
    for summary in summaries:
        console.print(_groups_table(summary))
        for name, text in _facts(summary):
            console.print(f"  {name:<18} {text}")


def _groups_table(summary: "Summary") -> "Table":
    """`of due`: used as a part of due while the tenants had work and were below their caps."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from tenure.simulate.chart import POLICY_TITLES, time_text  # noqa: PLC0415

    table = Table(
        title=POLICY_TITLES[summary.policy],
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    columns: list[tuple[str, Callable[[GroupSummary], str]]] = [
        ("weight", lambda group: f"{group.weight:g}"),
        ("jobs", lambda group: f"{group.jobs:,}"),
        ("wait p50", lambda group: time_text(group.waits.p50)),
        ("p95", lambda group: time_text(group.waits.p95)),
        ("max", lambda group: time_text(group.waits.max)),
        ("share", lambda group: f"{group.part:.1%}"),
        ("of due", lambda group: f"{group.used_seconds / group.due_seconds:.2f}" if group.due_seconds else "-"),
    ]
    if any(group.waiting for group in summary.groups):
        columns.insert(2, ("not begun", lambda group: f"{group.waiting:,}"))
    if summary.crashes:
        columns.append(("crashes", lambda group: f"{group.crashes:,}"))
    table.add_column("tenants")
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for group in summary.groups:
        name = group.name if group.tenants == 1 else f"{group.tenants:,} {group.name}"
        table.add_row(name, *(text(group) for _, text in columns))
    return table


def _facts(summary: "Summary") -> Iterator[tuple[str, str]]:
    from tenure.simulate.chart import time_text  # noqa: PLC0415

    yield "slots in use", f"{summary.utilisation:.1%}; done after {time_text(summary.ended_at)}"
    yield "left idle", f"{summary.idle_while_waiting:,} moments with a free slot and eligible work"
    if summary.jain is not None:
        yield "Jain's index", f"{summary.jain:.4f} over {summary.jain_tenants:,} tenants that always had work"
    bound = f"; start tags promise {time_text(summary.alone_wait_bound)}" if summary.policy == "fair" else ""
    yield "a lone first job", f"waited {time_text(summary.alone_wait_max)} at most{bound}"
    if summary.behind:
        worst = summary.behind[0]
        yield "most behind", f"{worst.tenant}, by {time_text(worst.behind_seconds)} of work per weight"


def _print_json(load: "Load", summaries: Sequence["Summary"]) -> None:
    import msgspec  # noqa: PLC0415

    click.echo(msgspec.json.encode({"load": load.name, "seed": load.seed, "policies": summaries}))


def _draw(path: Path, load: "Load", summaries: Sequence["Summary"]) -> None:
    from tenure.simulate.chart import draw  # noqa: PLC0415

    try:
        path.write_text(draw(load, summaries), "utf-8")
    except OSError as error:
        raise click.UsageError(f"The chart cannot be written: {error}") from None
    click.echo(f"chart: {path}", err=True)
