#!/usr/bin/env python3
"""Writes what the code knows best into the pages: `make docs`. With --check it only says which pages are out of date.

A page holds a block between `<!-- generated: NAME -->` and `<!-- end generated -->`; BLOCKS says who writes it.
Everything around a block is written by hand.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import click

import tenure
from tenure.api.operations import FILE, OPERATIONS, PAGE
from tenure.api.problems import STATUS_BY_CODE
from tenure.core import dataset, keys, lifecycle, place
from tenure.core.errors import TenureError
from tenure.core.lifecycle import ENTRY_STATES, TERMINAL, TRANSITIONS, JobEvent, JobState
from tenure.wiring import settings
from tenure.wiring.layers import variable_name

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end generated -->)", re.DOTALL)
FINAL = frozenset({JobState.SUCCEEDED, JobState.CANCELLED})
"""States that nothing leaves, not even a replay."""


def main(arguments: list[str]) -> int:
    stale = [page for page in sorted(DOCS.rglob("*.md")) if rendered(page) != page.read_text("utf-8")]
    if "--check" in arguments:
        for page in stale:
            sys.stderr.write(f"{page.relative_to(DOCS.parent)} is out of date: run `make docs`\n")
        return 1 if stale else 0
    for page in stale:
        page.write_text(rendered(page), "utf-8")
        sys.stdout.write(f"wrote {page.relative_to(DOCS.parent)}\n")
    return 0


def rendered(page: Path) -> str:
    """The page with all its blocks as the code would have them now."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]]().strip()}\n\n{found[3]}", page.read_text("utf-8"))


# ---- the life of a job


def lifecycle_diagram() -> str:
    moves: dict[tuple[str, str], list[str]] = {("[*]", state): ["enqueue"] for state in sorted(ENTRY_STATES)}
    for (source, event), target in TRANSITIONS.items():
        moves.setdefault((source, target), []).append(event)
    lines = [f"    {source} --> {target}: {' / '.join(events)}" for (source, target), events in moves.items()]
    lines += [f"    {state} --> [*]" for state in sorted(FINAL)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def lifecycle_table() -> str:
    words = attribute_docs(lifecycle)
    rows = (
        (f"`{source}`", f"`{event}`", f"`{target}`", words["JobEvent", event.name])
        for (source, event), target in TRANSITIONS.items()
    )
    return table(("from", "event", "to", "when"), rows)


def lifecycle_matrix() -> str:
    rows = (
        (f"`{state}`" + (" (terminal)" if state in TERMINAL else ""), *(_cell(state, event) for event in JobEvent))
        for state in JobState
    )
    return table(("state", *(f"`{event}`" for event in JobEvent)), rows)


def _cell(state: JobState, event: JobEvent) -> str:
    target = lifecycle.next_state(state, event)
    return f"`{target}`" if target else "·"


def reason_table() -> str:
    words = attribute_docs(place)
    return table(("reason", "why"), ((f"`{item}`", words["Reason", item.name]) for item in place.Reason))


# ---- settings


def settings_tables() -> str:
    words = attribute_docs(settings)
    found = next(item for item in fields(settings.Settings) if item.name == "data_dir")
    head = ("setting", "variable", "default", "meaning")
    parts = [table(head, [_setting_row("", found, words["Settings", "data_dir"])])]
    for name, section in settings.SECTIONS.items():
        rows = [_setting_row(name, item, words[section.__name__, item.name]) for item in fields(section)]
        parts.append(f"## `[{name}]`\n\n{_about(section)}\n\n{table(head, rows)}")
    source = settings.SourceSettings
    rows = [(f"`{item.name}`", _default(item, ""), words[source.__name__, item.name]) for item in fields(source)]
    parts.append(f"## `[sources.NAME]`\n\n{_about(source)}\n\n{table(('setting', 'default', 'meaning'), rows)}")
    return "\n\n".join(parts)


def _setting_row(section: str, item: Field[object], meaning: str) -> tuple[str, ...]:
    path = (section, item.name) if section else (item.name,)
    return (f"`{'.'.join(path)}`", f"`{variable_name(path)}`", _default(item, meaning), meaning)


def _default(item: Field[object], meaning: str) -> str:
    if item.default is MISSING:
        return "see right" if "Default:" in meaning else "required"
    match item.default:
        case None | ():
            return "none"
        case bool():
            return f"`{str(item.default).lower()}`"
        case StrEnum():
            return f"`{item.default.value}`"
        case tuple():
            return f"`[{', '.join(map(str, item.default))}]`"
        case _:
            return f"`{item.default}`"


def _about(section: type) -> str:
    """The section's docstring behind its name, as a sentence."""
    text = said(section).partition("`: ")[2]
    return text[:1].upper() + text[1:]


# ---- errors, the API, the command line


def error_table() -> str:
    rows = (
        (
            f"`{error.code}`",
            str(STATUS_BY_CODE.get(error.code, "")),
            "yes" if error.retryable else "no",
            said(error),
            error.what_to_do,
        )
        for error in error_classes()
    )
    return table(("code", "HTTP", "retry", "meaning", "what to do"), rows)


def error_classes() -> list[type[TenureError]]:
    """One class for each code, by code; a class that only groups others keeps its parent's code and is left out."""
    for module in pkgutil.walk_packages(tenure.__path__, "tenure."):
        importlib.import_module(module.name)
    by_code: dict[str, type[TenureError]] = {}
    for error in _with_descendants(TenureError):
        by_code.setdefault(error.code, error)
    return [by_code[code] for code in sorted(by_code)]


def _with_descendants(parent: type[TenureError]) -> Iterator[type[TenureError]]:
    yield parent
    for child in parent.__subclasses__():
        yield from _with_descendants(child)


def operation_table() -> str:
    rows = (
        (
            f"`{item.method} {item.path}`",
            f"`{item.scope}`" if item.scope else "",
            ", ".join(_answer(status, answer) for status, answer in item.answers.items()),
            item.summary,
        )
        for item in OPERATIONS
    )
    return table(("address", "scope", "answers", "what it does"), rows)


def _answer(status: int, answer: type | str | None) -> str:
    kind = {FILE: "file", PAGE: "page", None: ""}.get(answer) if not isinstance(answer, type) else answer.__name__
    return f"{status} {kind}".strip()


def operator_table() -> str:
    examples = {
        "eq": '`"paid"` or `{"eq": "paid"}`',
        "ne": '`{"ne": "paid"}`',
        "in": '`["paid", "open"]` or `{"in": [...]}`',
        "range": '`{"range": ["2026-01-01", "2026-02-01"]}`: from is included, to is not, either may be null',
        "null": '`null` or `{"null": true}`; `{"null": false}` for the rest',
        "prefix": '`{"prefix": "INV-"}`',
        "contains": '`{"contains": "refund"}`',
    }
    return table(("operator", "written"), ((f"`{item}`", examples[item]) for item in dataset.FilterOperator))


def scope_list() -> str:
    return ", ".join(f"`{scope}`" for scope in keys.Scope)


def command_list() -> str:
    root = importlib.import_module("tenure.cli.main").tenure
    return "\n\n".join(_command(path, command) for path, command in commands(root, ("tenure",)))


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The command and everything below it, with the words that call it. Hidden ones are left out."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from commands(inner, (*path, name))


def _command(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
    parts = [f"{'#' * (len(path) + 1)} `{' '.join(path)}`", " ".join((command.help or "").split()), f"    {usage}"]
    rows = [found for item in command.params if (found := item.get_help_record(context))]
    if rows:
        parts.append(table(("option", "meaning"), ((f"`{name}`", meaning) for name, meaning in rows)))
    return "\n\n".join(part for part in parts if part)


def decision_list() -> str:
    pages = sorted((DOCS / "adr").glob("[0-9]*.md"))
    return "\n".join(f"- [{page.read_text('utf-8').splitlines()[0].removeprefix('# ')}]({page.name})" for page in pages)


# ---- shared


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (head, ("---",) * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def said(item: object) -> str:
    """The docstring on one line."""
    return " ".join((inspect.getdoc(item) or "").split())


def attribute_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """(class, attribute) -> the text written under the attribute, on one line; empty where there is none."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            for item, after in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
                for target in item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]:
                    if isinstance(target, ast.Name):
                        found[node.name, target.id] = _text(after)
    return found


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


BLOCKS: dict[str, Callable[[], str]] = {
    "commands": command_list,
    "decisions": decision_list,
    "errors": error_table,
    "lifecycle-diagram": lifecycle_diagram,
    "lifecycle-matrix": lifecycle_matrix,
    "lifecycle-table": lifecycle_table,
    "operations": operation_table,
    "operators": operator_table,
    "reasons": reason_table,
    "scopes": scope_list,
    "settings": settings_tables,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
