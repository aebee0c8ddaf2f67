import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.dataset import FilterOperator
from tenure.core.errors import InvalidRequestError
from tenure.core.fields import Problems, json_pointer
from tenure.core.strict_json import UnreadableJsonError, decode_strict
from tenure.exports.request import read_request

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["events", "orders", "id", "kind", "at", "total", "tenant_id", "x"])
CONDITIONS = VALUES | st.dictionaries(st.sampled_from(list(FilterOperator)) | st.text(max_size=4), VALUES, max_size=3)
FILTERS = VALUES | st.dictionaries(NAMES | st.text(max_size=3), CONDITIONS, max_size=3)
COLUMNS = VALUES | st.lists(NAMES, max_size=3)
CHOICE = NAMES | st.fixed_dictionaries({"name": NAMES}, optional={"columns": COLUMNS, "filters": FILTERS})
REQUESTS = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "format": VALUES | st.just("csv"),
        "compression": VALUES | st.sampled_from(["none", "gzip"]),
        "dataset": VALUES | NAMES,
        "datasets": VALUES | st.lists(CHOICE, max_size=3),
        "columns": COLUMNS,
        "filters": FILTERS,
        "delivery": VALUES
        | st.fixed_dictionaries({"type": st.sampled_from(["download", "webhook"])}, optional={"url": st.text()}),
        "link_seconds": VALUES | st.integers(60, 700_000),
        "other": VALUES,
    },
)


def check_against_catalogue(body, catalogue):
    try:
        spec = read_request(body, catalogue)
    except InvalidRequestError as error:
        texts = [problem.pointer + problem.detail for problem in error.problems]
        # Encoding raises where a lone surrogate got through.
        return "".join(texts).encode("utf-8") != b""
    assert spec.selections
    for selection in spec.selections:
        dataset = catalogue.datasets[selection.dataset]
        assert selection.columns
        assert set(selection.columns) <= set(dataset.column_names())
        for item in selection.filters:
            assert item.operator in dataset.filters[item.column]
    return True


@settings(max_examples=400, deadline=None)
@given(request=REQUESTS)
def test_any_json_is_a_spec_from_the_catalogue_or_an_invalid_request(request, catalogue):
    assert check_against_catalogue(json.dumps(request).encode(), catalogue)


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0d8ntrueNaN1e-. ', max_size=60).map(str.encode))
def test_any_bytes_are_a_spec_from_the_catalogue_or_an_invalid_request(body, catalogue):
    assert check_against_catalogue(body, catalogue)


@settings(max_examples=200, deadline=None)
@given(value=VALUES)
def test_strict_decoding_agrees_with_the_ordinary_decoder_or_refuses(value):
    text = json.dumps(value)
    problems = Problems(json_pointer)
    with suppress(UnreadableJsonError):
        decoded = decode_strict(text.encode(), problems)
        assert problems.found() or decoded == json.loads(text)
