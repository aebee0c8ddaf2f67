from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.transports.retry_after import RETRY_AFTER_SECONDS_MAX, read_retry_after

NOW = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("007", 7),
        ("-5", 0),
        ("-99999999999999999999", 0),
        ("86401", RETRY_AFTER_SECONDS_MAX),
        ("9" * 5000, RETRY_AFTER_SECONDS_MAX),
        ("Wed, 21 Oct 2026 07:30:00 GMT", 120),
        ("Wednesday, 21-Oct-26 07:30:00 GMT", 120),
        ("Wed Oct 21 07:30:00 2026", 120),
        ("Wed, 21 Oct 2026 07:30:00 -0000", 120),
        ("Wed, 21 Oct 2026 09:30:00 +0200", 120),
        ("Wed, 21 Oct 2020 07:30:00 GMT", 0),
        ("Wed, 21 Oct 9999 07:30:00 GMT", RETRY_AFTER_SECONDS_MAX),
        ("Wed, 21 Oct 99999 07:30:00 GMT", None),
        ("Wed, 99 Oct 2026 07:30:00 GMT", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("1e3", None),
        ("inf", None),
        ("nan", None),
        ("1_000", None),
        ("٣", None),
    ],
)
def test_a_wait_is_read_and_kept_within_bounds(value, seconds):
    assert read_retry_after(value, NOW) == seconds


@given(st.text(max_size=60))
def test_no_text_upsets_the_reader(value):
    seconds = read_retry_after(value, NOW)
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_SECONDS_MAX


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=23)))
def test_a_date_is_the_time_until_it(wait):
    value = (NOW + wait).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert read_retry_after(value, NOW) == pytest.approx(wait.total_seconds(), abs=1)
