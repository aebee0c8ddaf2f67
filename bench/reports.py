"""Figures as JSON, as a Markdown table, and as a chart that is a plain SVG."""

import json
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from systems import BUILD

INK, MUTED, PAPER = "#1f2933", "#7b8794", "#ffffff"
COLOURS = ("#0b7285", "#f08c00", "#868e96", "#5f3dc4")
WIDTH, ROW, LABEL = 760, 26, 250


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * share), 1) - 1]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rates(instants: Sequence[float], windows: int, *, skip: float = 0.05) -> list[float]:
    """Jobs per second in windows of as many jobs each; the first part, in which everything warms up, is left out."""
    kept = instants[int(len(instants) * skip) :]
    size = (len(kept) - 1) // windows
    cuts = [kept[number * size] for number in range(windows)] + [kept[-1]]
    counts = [size] * (windows - 1) + [len(kept) - 1 - size * (windows - 1)]
    pairs = zip(counts, pairwise(cuts), strict=True)
    return [count / max(end - start, 1e-9) for count, (start, end) in pairs]


def machine(server_version: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Where and when; a figure without this means nothing."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "mode": mode(),
        "processors": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "postgresql": server_version,
        "postgresql_settings": dict(settings),
    }


def mode() -> str:
    """`BENCH=quick` checks the harness; its figures mean little."""
    return "quick" if os.environ.get("BENCH") == "quick" else "full"


def write(name: str, figures: Mapping[str, Any], rows: Sequence[tuple[str, str, str, bool | None]], chart: str) -> None:
    """`rows`: what, measured, target, met."""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
    marks = {True: "yes", False: "**no**", None: ""}
    lines = ["| what | measured | target | met |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {value} | {target} | {marks[met]} |" for what, value, target, met in rows]
    table = "\n".join(lines)
    (BUILD / f"{name}.md").write_text(f"{table}\n\n![{name}]({name}.svg)\n")
    (BUILD / f"{name}.svg").write_text(chart)
    print(f"\n{table}\n\nWritten: {_shown(BUILD / name)}.json, .md, .svg")


Bars = Sequence[tuple[str, Sequence[tuple[str, float, str]]]]
"""Groups of (name, bars), a bar being (label, value, what to write beside it)."""


def bar_chart(title: str, groups: Bars) -> str:
    """Horizontal bars; each group has a scale of its own, and one label has one colour in all groups."""
    colours: dict[str, str] = {}
    parts, y = [], 56
    for name, bars in groups:
        parts.append(_text(16, y, name, weight="bold"))
        y += 12
        top = max((value for _, value, _ in bars), default=0) or 1
        for label, value, words in bars:
            colour = colours.setdefault(label, COLOURS[len(colours) % len(COLOURS)])
            length = max(value / top * (WIDTH - LABEL - 170), 1)
            parts.append(_text(LABEL - 10, y + 14, label, anchor="end"))
            parts.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{ROW - 8}" rx="2" fill="{colour}"/>')
            parts.append(_text(LABEL + length + 8, y + 14, words, colour=MUTED))
            y += ROW
        y += 26
    head = _text(16, 26, title, size=16, weight="bold")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{head}{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, words: str, **style: str | int) -> str:
    given = {"size": 13, "weight": "normal", "anchor": "start", "colour": INK, **style}
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{given["size"]}" font-weight="{given["weight"]}" '
        f'text-anchor="{given["anchor"]}" fill="{given["colour"]}">{escape(words)}</text>'
    )


def _shown(path: Path) -> str:
    return os.path.relpath(path)
