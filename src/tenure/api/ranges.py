"""Byte ranges of a file (RFC 9110 section 14): one range is honoured, everything else means the whole file."""

import re
from dataclasses import dataclass

from tenure.api.problems import RangeNotSatisfiableError

# Thirty digits are far beyond any file; without a bound, a header of digits would be converted in quadratic time.
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,30})-([0-9]{0,30})[ \t]*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """`length` bytes from `start`, out of `size`; `whole` when no range was asked for or honoured."""

    start: int
    length: int
    size: int
    whole: bool = False

    def content_range(self) -> str:
        return f"bytes {self.start}-{self.start + self.length - 1}/{self.size}"


def read_range(header: str | None, size: int) -> Span:
    """What to send. Raises RangeNotSatisfiableError for a well-formed range that holds no byte of the file."""
    whole = Span(start=0, length=size, size=size, whole=True)
    found = _RANGE.fullmatch(header or "")
    if found is None or not (found[1] or found[2]):
        # Malformed, another unit, or several ranges: a server may ignore the header, and then must send everything.
        return whole
    if not found[1]:
        return _span(max(0, size - int(found[2])), size - 1, size)
    first, last = int(found[1]), int(found[2]) if found[2] else size - 1
    if found[2] and last < first:
        return whole
    return _span(first, min(last, size - 1), size)


def _span(first: int, last: int, size: int) -> Span:
    if first > last:
        raise RangeNotSatisfiableError(
            f"the file has {size} bytes", headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"}
        )
    return Span(start=first, length=last - first + 1, size=size)
