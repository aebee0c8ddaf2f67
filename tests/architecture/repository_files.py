"""What the architecture tests look at: the tree as files, and the code as syntax trees."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src" / "tenure"
DOCS = ROOT / "docs"
README = ROOT / "README.md"
_MADE = {"__pycache__", "build", "dist", "node_modules"}
"""Folders that hold what was made from the rest."""


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that belongs to the repository, without asking git: a release archive has none."""
    return tuple(sorted(_walk(ROOT)))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            hidden = entry.name.startswith(".") and entry.name not in {".ci", ".github"}
            if not hidden and entry.name not in _MADE and not entry.name.endswith(".egg-info"):
                yield from _walk(path)
        elif entry.name != ".coverage":
            yield path


def text_files() -> Iterator[tuple[str, str]]:
    """(path inside the repository, text) of every file that is text."""
    for path in repository_files():
        try:
            yield shown(path), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def modules(folder: Path = PRODUCT) -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".py" and path.is_relative_to(folder)]


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"), str(module))


def shown(path: Path) -> str:
    """How a path is written in messages and lists of exceptions."""
    return path.relative_to(ROOT).as_posix()


def within(path: Path) -> str:
    """The path below `src/tenure`."""
    return path.relative_to(PRODUCT).as_posix()


def pages() -> list[Path]:
    """Every page of documentation, those at the root included."""
    return [path for path in repository_files() if path.suffix == ".md"]
