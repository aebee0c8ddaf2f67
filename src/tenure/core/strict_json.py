"""JSON as strictly as RFC 8259 and I-JSON allow: what two parsers could read differently is refused, with its place.

Python's decoder accepts NaN, duplicate keys, lone surrogates and numbers of any size; each of them would let the text
that was checked and the value that is used drift apart.
"""

import json
import math
import re
from collections.abc import Sequence

from tenure.core.fields import Path, Problems

DEPTH_MAX = 16
INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
NUMBER_CHARS_MAX = 400
"""Longer numerals are refused unread: converting them costs quadratic time."""

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class UnreadableJsonError(ValueError):
    """The bytes are not one JSON text; the message says why, in a sentence without input in it."""


class _Object(dict[str, object]):
    """A decoded object that remembers which keys came more than once."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: Sequence[tuple[str, object]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = () if len(self) == len(pairs) else tuple(sorted({n for n in names if names.count(n) > 1}))


class _Numeral(str):
    """A number JSON cannot carry, or too long to convert."""

    __slots__ = ()


def decode_strict(body: bytes, problems: Problems) -> object:
    """The value in `body`.

    Raises UnreadableJsonError when there is none. Values that no two parsers agree on (NaN, infinities, duplicate keys,
    lone surrogates, endless numerals) are noted in `problems`: the value must then not be used.
    """
    text = _decode_utf8(body)
    if _depth(body) > DEPTH_MAX:
        raise UnreadableJsonError(f"nested deeper than {DEPTH_MAX} levels")
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_Object,
            parse_constant=_Numeral,
            parse_int=_read_int,
            parse_float=_read_float,
        )
    except json.JSONDecodeError as error:
        raise UnreadableJsonError(f"not valid JSON at character {error.pos}: {error.msg}") from None
    _check(value, (), problems)
    return value


def _decode_utf8(body: bytes) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        raise UnreadableJsonError("starts with a byte order mark; send plain UTF-8")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableJsonError(f"not UTF-8 at byte {error.start}") from None


def _depth(body: bytes) -> int:
    """Deepest nesting, found before parsing: Python's decoder would recurse into it."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _read_int(text: str) -> int | _Numeral:
    return int(text) if len(text) <= NUMBER_CHARS_MAX else _Numeral(text)


def _read_float(text: str) -> float | _Numeral:
    value = float(text) if len(text) <= NUMBER_CHARS_MAX else math.inf
    return value if math.isfinite(value) else _Numeral(text)


def _check(value: object, path: Path, problems: Problems) -> None:
    match value:
        case _Numeral():
            problems.note(path, "is not a number JSON can carry")
        case str():
            _check_text(value, path, problems)
        case _Object():
            for name in value.repeated:
                problems.note((*path, name), "appears more than once")
            for name, member in value.items():
                _check_text(name, (*path, name), problems)
                _check(member, (*path, name), problems)
        case list():
            for index, member in enumerate(value):
                _check(member, (*path, index), problems)
        case _:
            pass


def _check_text(text: str, path: Path, problems: Problems) -> None:
    # encode() is the cheapest exact test for surrogates, which only an escape can have brought in.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        problems.note(path, "holds a lone surrogate, which is not a character")
