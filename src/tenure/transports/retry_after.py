"""How long a receiver asks us to wait: the Retry-After header (RFC 9110, 10.2.3)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRY_AFTER_SECONDS_MAX = 24 * 3_600.0
"""The longest pause between two tries that Standard Webhooks recommends."""
_SECONDS = re.compile(r"[+-]?[0-9]+")


def read_retry_after(value: str, now: datetime) -> float | None:
    """Seconds from `now`, within 0 and RETRY_AFTER_SECONDS_MAX; None when the header says nothing readable."""
    text = value.strip()
    # Through float, since int refuses thousands of digits.
    seconds = float(text) if _SECONDS.fullmatch(text) else _seconds_until(text, now)
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        # `-0000` is read as "zone unknown"; HTTP dates are always in UTC.
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        # What the standard library raises for the many ways a date can be wrong.
        return None
