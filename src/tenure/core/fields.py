"""Reading untrusted objects field by field: every problem is noted, none stops the reading.

A `Table` hands out typed values. A wrong or missing field is noted in `Problems` and answered with its default, so that
one reading finds everything; whoever started it raises at the end.
"""

import difflib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from tenure.core.errors import FieldProblem

Step = str | int
Path = tuple[Step, ...]
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

SHOWN_CHARS_MAX = 80
"""Longest piece of somebody's input that a problem repeats."""
PROBLEMS_MAX = 100
SUGGESTED_COUNT_MAX = 10
"""Beside a near match, more names than this are not listed."""


class LooseText(str):
    """Text that may stand for a number, a yes or no, or a list: what the environment and flags give."""

    __slots__ = ()


class Problems:
    """What is wrong so far. `name` renders a path: `json_pointer` for requests, `dotted_name` for settings."""

    def __init__(self, name: Callable[[Path], str]) -> None:
        self._name = name
        self._found: list[FieldProblem] = []

    def note(self, path: Path, detail: str) -> None:
        self._found.append(FieldProblem(pointer=self._name(path), detail=detail))

    def include(self, others: Iterable[FieldProblem]) -> None:
        self._found.extend(others)

    def found(self) -> tuple[FieldProblem, ...]:
        """Everything noted, at most `PROBLEMS_MAX`; the last entry counts the rest."""
        if len(self._found) <= PROBLEMS_MAX:
            return tuple(self._found)
        rest = len(self._found) - PROBLEMS_MAX
        return (*self._found[:PROBLEMS_MAX], FieldProblem(pointer=self._name(()), detail=f"and {rest} more problems"))


def json_pointer(path: Path) -> str:
    """RFC 6901. Steps that could not be sent as UTF-8, or not as one short line, are escaped and cut."""
    return "".join(f"/{_shown_step(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def dotted_name(path: Path) -> str:
    """`worker.lease_seconds`, `datasets[0].columns[2]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{_shown_step(step)}"
    return text


def shown(value: object) -> str:
    """A piece of input as a problem may repeat it: short, on one line, encodable."""
    return value_kind(value) if isinstance(value, (dict, list)) else _cut(_printable(repr(value)))


def listed(names: Iterable[str]) -> str:
    """Names for a sentence, the first twenty."""
    every = list(names)
    tail = f" and {len(every) - 20} more" if len(every) > 20 else ""  # noqa: PLR2004  said in the docstring
    return (", ".join(every[:20]) or "none") + tail


def suggestion(name: str, allowed: Collection[str]) -> str:
    """` Did you mean "x"?` when a near name exists, and what is allowed; a long list only when there is none."""
    near = difflib.get_close_matches(name[:SHOWN_CHARS_MAX], allowed, n=1)
    meant = f' Did you mean "{near[0]}"?' if near else ""
    return meant if near and len(allowed) > SUGGESTED_COUNT_MAX else f"{meant} Allowed: {listed(allowed)}."


def value_kind(value: object) -> str:  # noqa: PLR0911  one line per kind is the clearest form
    """The kind of a decoded JSON or TOML value, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


class Table:
    """One object of the input. Every read names a field; `refuse_unknown` then notes the fields nobody read."""

    def __init__(self, value: object, path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._known: set[str] = set()
        self._values: Mapping[str, object] = {}
        if isinstance(value, Mapping):
            self._values = value
        else:
            problems.note(path, f"must be an object, not {value_kind(value)}")

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def has(self, name: str) -> bool:
        self._known.add(name)
        return name in self._values

    def raw(self, name: str) -> object:
        """The value as it came; None when absent."""
        self._known.add(name)
        return self._values.get(name)

    def note(self, name: str, detail: str) -> None:
        self.problems.note((*self.path, name), detail)

    def text(self, name: str, default: str) -> str:
        value = self.raw(name)
        if isinstance(value, str) and value:
            return str(value)
        if self.has(name):
            self.note(name, "must not be empty" if value == "" else f"must be text, not {value_kind(value)}")
        return default

    def required_text(self, name: str) -> str:
        """Non-empty text; a missing field is noted, and answered with ''."""
        if not self.has(name):
            self.note(name, "is required")
        return self.text(name, "")

    def optional_text(self, name: str) -> str | None:
        return self.text(name, "") or None

    def whole(self, name: str, default: int, *, low: int, high: int) -> int:
        value = _loosened(self.raw(name), int)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        if self.has(name):
            self.note(name, f"must be a whole number from {low} to {high}, not {shown(value)}")
        return default

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        value = _loosened(self.raw(name), float)
        # NaN fails both comparisons and is refused with the rest.
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        if self.has(name):
            self.note(name, f"must be a number from {low:g} to {high:g}, not {shown(value)}")
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        value = _loosened(self.raw(name), _yes_or_no)
        if isinstance(value, bool):
            return value
        if self.has(name):
            self.note(name, f"must be true or false, not {shown(value)}")
        return default

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of different, non-empty texts."""
        if not self.has(name):
            return default
        values = self.items(name)
        found = [str(value) for value in values if isinstance(value, str) and value]
        for index, value in enumerate(values):
            if not isinstance(value, str) or not value:
                self.problems.note((*self.path, name, index), f"must be non-empty text, not {shown(value)}")
        for repeated in sorted({text for text in found if found.count(text) > 1}):
            self.note(name, f"names {shown(repeated)} more than once")
        return tuple(dict.fromkeys(found))

    def items(self, name: str) -> list[object]:
        """The members of a list; [] when absent or no list."""
        value = _loosened(self.raw(name), _split)
        if isinstance(value, list):
            return value
        if self.has(name):
            self.note(name, f"must be a list, not {value_kind(value)}")
        return []

    def choice(self, name: str, default: ChoiceT) -> ChoiceT:
        """One of the enum's values."""
        allowed = tuple(member.value for member in type(default))
        value = self.text(name, default)
        if value in allowed:
            return type(default)(value)
        self.note(name, f"{shown(value)} is not offered.{suggestion(value, allowed)}")
        return default

    def table(self, name: str) -> "Table":
        return Table(self._values[name] if self.has(name) else {}, (*self.path, name), self.problems)

    def refuse_unknown(self) -> None:
        for name in self._values:
            if name not in self._known:
                self.note(name, f"is not a known field.{suggestion(name, sorted(self._known))}")


def _loosened(value: object, parse: Callable[[str], object]) -> object:
    """What loose text stands for; every other value, and text that cannot be parsed, as it is."""
    if not isinstance(value, LooseText):
        return value
    try:
        parsed = parse(value)
    except ValueError:
        return str(value)
    return str(value) if isinstance(parsed, float) and not math.isfinite(parsed) else parsed


def _yes_or_no(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.strip().lower() not in words:
        raise ValueError(text)
    return words[text.strip().lower()]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _shown_step(step: Step) -> str:
    return _cut(_printable(str(step)))


def _printable(text: str) -> str:
    """Lone surrogates and control characters as escapes: a problem must survive UTF-8 and a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"
