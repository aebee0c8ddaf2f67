import json

import pytest

from tenure.core.dataset import Catalogue, Filter, FilterOperator, Selection
from tenure.core.errors import InvalidRequestError
from tenure.core.export import Channel, Compression, Delivery, Format
from tenure.exports.request import MalformedRequestError, read_request

NESTED = '{"filters":{"kind":' + "[" * 20 + "]" * 20 + "}}"


@pytest.fixture
def read(catalogue):
    return lambda **request: read_request(json.dumps(request).encode(), catalogue)


@pytest.fixture
def problems(catalogue):
    def attempt(body=None, /, **request):
        text = body if body is not None else json.dumps(request)
        with pytest.raises(InvalidRequestError) as caught:
            read_request(text if isinstance(text, bytes) else text.encode(), catalogue)
        return {problem.pointer: problem.detail for problem in caught.value.problems}

    return attempt


def filters_of(spec, index=0):
    return spec.selections[index].filters


def test_an_empty_request_exports_everything_as_csv(read):
    spec = read()

    assert [selection.dataset for selection in spec.selections] == ["events", "orders"]
    assert spec.selections[0].columns == ("id", "kind", "at")
    assert (spec.format, spec.compression, spec.link_seconds) == (Format.CSV, Compression.NONE, 3600)
    assert spec.deliveries == (Delivery(),)


def test_a_full_request_is_read_as_it_stands(read):
    spec = read(
        format="csv",
        compression="gzip",
        dataset="events",
        columns=["at", "id"],
        filters={"kind": "paid"},
        delivery=[{"type": "download"}, {"type": "webhook", "url": "https://example.com/hook?x=1"}],
        link_seconds=600,
    )

    assert spec.selections == (
        Selection(
            dataset="events",
            columns=("at", "id"),
            filters=(Filter(column="kind", operator=FilterOperator.EQ, values=("paid",)),),
        ),
    )
    assert spec.compression is Compression.GZIP
    assert spec.deliveries[1] == Delivery(channel=Channel.WEBHOOK, url="https://example.com/hook?x=1")
    assert spec.link_seconds == 600


def test_several_datasets_each_have_their_own_columns_and_filters(read):
    spec = read(
        datasets=["events", {"name": "orders", "columns": ["total"], "filters": {"total": {"range": [1, None]}}}],
        filters={"kind": "x"},
    )

    assert spec.selections[0].columns == ("id", "kind", "at")
    assert spec.selections[1].columns == ("total",)
    assert [item.column for item in filters_of(spec, 1)] == ["kind", "total"]


@pytest.mark.parametrize(
    ("condition", "operator", "values"),
    [
        ("a", "eq", ("a",)),
        (True, "eq", (True,)),
        (-(2**63), "eq", (-(2**63),)),
        (1.5, "eq", (1.5,)),
        (["a", "b"], "in", ("a", "b")),
        ([1, 2.5], "in", (1, 2.5)),
        (None, "null", (True,)),
        ({"null": False}, "null", (False,)),
        ({"eq": "a"}, "eq", ("a",)),
        ({"ne": 3}, "ne", (3,)),
        ({"in": ["x"]}, "in", ("x",)),
        ({"range": ["2024-01-01", None]}, "range", ("2024-01-01", None)),
        ({"range": [None, 5]}, "range", (None, 5)),
        ({"prefix": "a%"}, "prefix", ("a%",)),
        ({"contains": "_"}, "contains", ("_",)),
        ("' OR 1=1 --", "eq", ("' OR 1=1 --",)),
        ("$1 %s {} \\", "eq", ("$1 %s {} \\",)),
    ],
)
def test_a_condition_becomes_a_filter(read, condition, operator, values):
    spec = read(dataset="events", filters={"kind": condition})

    assert filters_of(spec) == (Filter(column="kind", operator=FilterOperator(operator), values=values),)


def test_several_operators_in_one_object_must_all_hold(read):
    spec = read(dataset="events", filters={"kind": {"prefix": "a", "ne": "ab"}})

    assert [item.operator for item in filters_of(spec)] == [FilterOperator.NE, FilterOperator.PREFIX]


def test_requests_that_mean_the_same_are_the_same(read):
    assert read(dataset="events", filters={"kind": "a", "id": 1}) == read(
        filters={"id": 1, "kind": "a"}, dataset="events"
    )


@pytest.mark.parametrize(
    "condition",
    [
        {},
        [],
        {"raw": "1=1"},
        {"$where": "1"},
        {"eq": None},
        {"eq": ["a"]},
        {"eq": {}},
        {"in": "a"},
        {"in": []},
        {"in": ["a", 1]},
        {"in": [True, 1]},
        {"in": [None]},
        {"in": ["x"] * 1001},
        {"range": "a"},
        {"range": ["a"]},
        {"range": [None, None]},
        {"range": [1, "a"]},
        {"range": [True, None]},
        {"range": [[1], 2]},
        {"null": "true"},
        {"null": 1},
        {"prefix": ""},
        {"prefix": 3},
        {"contains": None},
        "a\0b",
        "a" * 1001,
        2**63,
        -(2**63) - 1,
        [["a"]],
    ],
)
def test_a_badly_formed_condition_is_refused_where_it_stands(problems, condition):
    assert all(
        pointer.startswith("/filters/kind") for pointer in problems(dataset="events", filters={"kind": condition})
    )


def test_a_shared_filter_must_be_offered_by_every_chosen_dataset(problems):
    found = problems(filters={"total": 3, "kind": {"prefix": "x"}})

    assert 'dataset "events" offers no filter on this column' in found["/filters/total"]
    assert 'dataset "orders" offers here only: eq' in found["/filters/kind/prefix"]


@pytest.mark.parametrize("name", ["pg_catalog", "public.events", "ctid", "Events", 'events"', "", "tenant_id"])
def test_names_outside_the_catalogue_are_answered_alike(problems, name):
    assert set(problems(dataset=name)) == {"/dataset"}
    assert set(problems(dataset="events", columns=[name])) <= {"/columns", "/columns/0"}
    pointer = f"/filters/{name}"
    assert set(problems(dataset="events", filters={name: "x"})) == {pointer}


def test_every_wrong_field_is_named_at_once(problems):
    found = problems(
        format="parquet",
        compression="zstd",
        datasets=["events", {"name": "ordrs"}, {"columns": []}, 7],
        filters={"a/b~c": 1, "kind": {"eqq": 1}},
        delivery=[{"type": "fax"}, {"type": "webhook"}, {"url": "x"}, 3],
        link_seconds="60",
        tenant_id="other",
    )

    assert set(found) == {
        "/format",
        "/compression",
        "/datasets/1/name",
        "/datasets/2/name",
        "/datasets/3",
        "/filters/a~1b~0c",
        "/filters/kind/eqq",
        "/delivery/0/type",
        "/delivery/1/url",
        "/delivery/2/type",
        "/delivery/3",
        "/link_seconds",
        "/tenant_id",
    }
    assert "Allowed: csv." in found["/format"]
    assert 'Did you mean "orders"?' in found["/datasets/1/name"]
    assert 'Did you mean "eq"?' in found["/filters/kind/eqq"]


@pytest.mark.parametrize(
    ("request_fields", "pointer"),
    [
        ({"dataset": None}, "/dataset"),
        ({"dataset": "events", "datasets": ["events"]}, "/datasets"),
        ({"datasets": []}, "/datasets"),
        ({"datasets": "events"}, "/datasets"),
        ({"datasets": ["events"] * 51}, "/datasets"),
        ({"datasets": ["events", "events"]}, "/datasets/1"),
        ({"datasets": [{"name": "events", "tenant": "x"}]}, "/datasets/0/tenant"),
        ({"datasets": [{"name": "events", "columns": ["id"]}], "columns": ["at"]}, "/columns"),
        ({"columns": ["id"]}, "/columns"),
        ({"dataset": "events", "columns": []}, "/columns"),
        ({"dataset": "events", "columns": ["id", "id"]}, "/columns"),
        ({"dataset": "events", "columns": "id"}, "/columns"),
        ({"dataset": "events", "columns": None}, "/columns"),
        ({"dataset": "events", "columns": [1]}, "/columns/0"),
        ({"filters": None}, "/filters"),
        ({"filters": []}, "/filters"),
        ({"format": None}, "/format"),
        ({"format": "jsonl"}, "/format"),
        ({"format": ["csv"]}, "/format"),
        ({"link_seconds": 59}, "/link_seconds"),
        ({"link_seconds": 604801}, "/link_seconds"),
        ({"link_seconds": 600.0}, "/link_seconds"),
        ({"link_seconds": True}, "/link_seconds"),
        ({"link_seconds": None}, "/link_seconds"),
        ({"delivery": []}, "/delivery"),
        ({"delivery": None}, "/delivery"),
        ({"delivery": [{"type": "download"}] * 11}, "/delivery"),
        ({"delivery": [{"type": "download"}, {"type": "download"}]}, "/delivery/1"),
        ({"delivery": {"type": "download", "url": "https://x.example"}}, "/delivery/url"),
    ],
)
def test_a_wrong_field_is_named(problems, request_fields, pointer):
    assert pointer in problems(**request_fields)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "file:///etc/passwd",
        "gopher://example.com",
        "https://",
        "https:///path",
        "https://user@example.com",
        "https://user:pw@example.com",
        "https://@example.com",
        "https://example.com/#x",
        "https://example.com/#",
        "https://exa mple.com",
        "https://example.com/\n",
        "https://exämple.com",
        "https://example.com:0",
        "https://example.com:99999",
        "https://example.com:x",
        "https://[::1",
        "https:\\\\example.com",
        "https://example.com\\.evil.example",
        "https://example.com/" + "a" * 2048,
        "https://example.com/\0",
    ],
)
def test_a_webhook_address_that_is_no_plain_url_is_refused(problems, url):
    assert set(problems(delivery={"type": "webhook", "url": url})) == {"/delivery/url"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"{}x",
        b"{} {}",
        b"\xef\xbb\xbf{}",
        '{"format":"csv"}'.encode("utf-16"),
        b"\xff{}",
        b'{"format":"\\ud800"}',
        b'{"\\udfff":1}',
        b'{"filters":{"id":NaN}}',
        b'{"filters":{"id":Infinity}}',
        b'{"filters":{"id":-Infinity}}',
        b'{"filters":{"id":1e999}}',
        b'{"filters":{"id":' + b"9" * 5000 + b"}}",
        b'{"format":"csv","format":"csv"}',
        b'{"filters":{"id":1,"id":2}}',
        b"{'format':'csv'}",
        b'{"format":"csv",}',
        b'{"format":"a\tb"}',
        b"// no\n{}",
        NESTED.encode(),
        b"[" * 60_000,
        b'{"a":' * 10_000,
    ],
)
def test_a_body_two_parsers_could_read_differently_is_malformed(catalogue, body):
    with pytest.raises(MalformedRequestError) as caught:
        read_request(body, catalogue)

    for problem in caught.value.problems:
        problem.pointer.encode("utf-8")
        problem.detail.encode("utf-8")


def test_a_malformed_value_is_named_by_its_pointer(problems):
    assert set(problems('{"filters":{"id":NaN,"kind":"\\ud800"},"a":1,"a":2}')) == {
        "/filters/id",
        "/filters/kind",
        "/a",
    }


@pytest.mark.parametrize("body", ["null", "[]", '"x"', "3", "true"])
def test_a_body_must_be_an_object(problems, body):
    assert set(problems(body)) == {""}


def test_brackets_inside_texts_do_not_count_as_depth(read):
    assert read(dataset="events", filters={"kind": "[" * 500 + '\\"' + "{" * 400})


def test_a_flood_of_problems_is_bounded_and_short(problems):
    found = problems(**{"x" * 500 + str(number): 1 for number in range(500)})

    assert len(found) <= 101
    assert max(map(len, found)) < 120


def test_too_many_conditions_are_refused(catalogue, problems):
    assert "/filters" in problems(dataset="events", filters={f"c{number}": 1 for number in range(33)})


def test_a_server_without_datasets_says_so():
    with pytest.raises(InvalidRequestError, match="no datasets"):
        read_request(b"{}", Catalogue(datasets={}))


def test_the_installation_sets_how_long_links_last(catalogue):
    assert read_request(b"{}", catalogue, link_seconds=120).link_seconds == 120
