"""What the commands for operators share: asking the database a question, and writing tables."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from tenure.cli.options import load_settings
from tenure.wiring.operator import Operator

Answer = TypeVar("Answer")

ACTOR = "cli"
"""Who the audit log says it was."""
UNLIMITED_WORD = "unlimited"


class LimitType(click.ParamType[object]):
    """A whole number, or `unlimited`."""

    name = f"number|{UNLIMITED_WORD}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        from tenure.core.tuning import UNLIMITED  # noqa: PLC0415

        if value == UNLIMITED_WORD:
            return UNLIMITED
        return click.INT.convert(value, param, ctx)


def ask(config: Path | None, question: Callable[[Operator], Awaitable[Answer]]) -> Answer:
    """Put one question to the database named in the settings."""
    from tenure.store.database import Database  # noqa: PLC0415
    from tenure.wiring.assemble import database_settings  # noqa: PLC0415

    async def answer() -> Answer:
        async with Database(database_settings(load_settings(config)), name="tenure cli") as database:
            return await question(Operator(database=database))

    return asyncio.run(answer())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def limit_text(limit: int | None) -> str:
    return UNLIMITED_WORD if limit is None else str(limit)


def count_text(count: int, bound: int) -> str:
    """A count that stops at its bound says so."""
    return f"{count}+" if count >= bound else str(count)
