from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.api.problems import RangeNotSatisfiableError
from tenure.api.ranges import read_range

FILE = bytes(range(100))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", FILE[:1]),
        ("bytes=0-", FILE),
        ("bytes=10-19", FILE[10:20]),
        ("bytes=90-1000", FILE[90:]),
        ("bytes=99-", FILE[99:]),
        ("bytes=-1", FILE[99:]),
        ("bytes=-1000", FILE),
        ("BYTES= 5-6 ", FILE[5:7]),
        ("bytes=0-" + "9" * 30, FILE),
    ],
)
def test_one_range_is_honoured(header, expected):
    span = read_range(header, len(FILE))

    assert FILE[span.start : span.start + span.length] == expected
    assert not span.whole


@pytest.mark.parametrize(
    "header",
    [None, "", "bytes", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,3-4", "bytes=a-b", "lines=0-1", "bytes=+1-2",
     "bytes=1--2", "bytes=٣-", "bytes=0-" + "9" * 5000, "bytes=1.5-2", "bytes 0-1/5"],
)  # fmt: skip
def test_everything_else_means_the_whole_file(header):
    assert read_range(header, len(FILE)).whole


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=100-", 100), ("bytes=100-200", 100), ("bytes=-0", 100), ("bytes=0-", 0)]
)
def test_a_range_without_a_byte_of_the_file_is_refused_with_the_size(header, size):
    with pytest.raises(RangeNotSatisfiableError) as caught:
        read_range(header, size)

    assert caught.value.headers["Content-Range"] == f"bytes */{size}"


@given(content=st.binary(min_size=1, max_size=500), cuts=st.lists(st.integers(0, 499), max_size=6))
def test_ranges_that_cover_a_file_put_together_are_the_file(content, cuts):
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    spans = [read_range(f"bytes={low}-{high - 1}", len(content)) for low, high in pairwise(edges)]

    assert b"".join(content[span.start : span.start + span.length] for span in spans) == content


@given(
    header=st.text(max_size=40) | st.from_regex(r"bytes=[0-9]{0,4}-[0-9]{0,4}", fullmatch=True),
    size=st.integers(0, 5000),
)
def test_any_header_gives_a_part_of_the_file_or_is_refused(header, size):
    try:
        span = read_range(header, size)
    except RangeNotSatisfiableError:
        return
    assert 0 <= span.start <= span.start + span.length <= size
    assert span.whole or span.length > 0
