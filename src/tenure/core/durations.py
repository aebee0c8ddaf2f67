"""Lengths of time as people write and read them: `90s`, `1h30m`, `4 h 2 min`."""

import re

UNIT_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
DURATION_CHARS_MAX = 40

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)


def read_duration(text: str) -> int | None:
    """Whole seconds of `1d`, `12h`, `1h30m` or `45s`; None when it is not written like that."""
    found = _DURATION.fullmatch(text) if 0 < len(text) <= DURATION_CHARS_MAX else None
    if found is None:
        return None
    counts = zip(found.groups(), UNIT_SECONDS.values(), strict=True)
    return sum(int(count or 0) * seconds for count, seconds in counts)


def spoken_duration(seconds: float) -> str:
    """In at most two units, rounded: `0.4 s`, `12 s`, `3 min 5 s`, `4 h 2 min`, `2 d 3 h`."""
    if seconds < 10:  # noqa: PLR2004  below it, a decimal says something
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    for size, name, below, below_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {name}" + (f" {rest} {below_name}" if rest else "")
    return f"{whole} s"
