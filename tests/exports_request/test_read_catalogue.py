import pytest

from tenure.core.dataset import FilterOperator
from tenure.core.errors import InvalidSettingsError
from tenure.exports.catalogue import read_catalogue


def table(**changes):
    whole = {
        "name": "orders",
        "source": "shop",
        "table": "public.orders",
        "tenant_column": "tenant_id",
        "key": ["id"],
        "columns": ["id", {"name": "total", "description": "in cents"}],
    }
    return {name: value for name, value in (whole | changes).items() if value is not ...}


def read(*tables):
    return read_catalogue(list(tables), ["shop"]).datasets


def problems(*tables):
    with pytest.raises(InvalidSettingsError) as caught:
        read(*tables)
    return {problem.pointer: problem.detail for problem in caught.value.problems}


def test_a_dataset_is_read_with_its_defaults():
    dataset = read(table())["orders"]

    assert dataset.query == 'SELECT * FROM "public"."orders"'
    assert dataset.column_names() == ("id", "total")
    assert dataset.columns[1].description == "in cents"
    assert (dataset.row_limit, dataset.query_timeout_seconds) == (10_000_000, 120)
    assert dataset.filters == {}


def test_a_query_loses_its_semicolon():
    assert read(table(table=..., query="  SELECT 1 AS id ;\n"))["orders"].query == "SELECT 1 AS id"


def test_quotes_in_a_table_name_are_doubled():
    assert read(table(table='a"b'))["orders"].query == 'SELECT * FROM "a""b"'


def test_key_and_cutoff_may_lie_outside_the_exported_columns_and_may_be_filtered():
    dataset = read(
        table(key=["shard", "id"], cutoff_column="made_at", filters={"made_at": ["range"], "shard": ["eq", "in"]})
    )["orders"]

    assert dataset.key == ("shard", "id")
    assert dataset.filters == {
        "made_at": frozenset({FilterOperator.RANGE}),
        "shard": frozenset({FilterOperator.EQ, FilterOperator.IN}),
    }


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": "Orders"}, "datasets[0].name"),
        ({"name": "a" * 64}, "datasets[0].name"),
        ({"name": "orders\n"}, "datasets[0].name"),
        ({"name": ...}, "datasets[0].name"),
        ({"source": "shp"}, "datasets[0].source"),
        ({"query": "SELECT 1"}, "datasets[0].query"),
        ({"table": ...}, "datasets[0].query"),
        ({"table": ..., "query": "DELETE FROM orders"}, "datasets[0].query"),
        ({"table": "a.b.c"}, "datasets[0].table"),
        ({"table": "a."}, "datasets[0].table"),
        ({"tenant_column": ...}, "datasets[0].tenant_column"),
        ({"tenant_column": "a\0b"}, "datasets[0].tenant_column"),
        ({"cutoff_column": "ä" * 32}, "datasets[0].cutoff_column"),
        ({"cutoff_column": ""}, "datasets[0].cutoff_column"),
        ({"key": []}, "datasets[0].key"),
        ({"key": ["id", "id"]}, "datasets[0].key"),
        ({"key": "id"}, "datasets[0].key"),
        ({"columns": []}, "datasets[0].columns"),
        ({"columns": ["id", "id"]}, "datasets[0].columns[1].name"),
        ({"columns": [3]}, "datasets[0].columns[0]"),
        ({"columns": [{"name": "id", "typ": "x"}]}, "datasets[0].columns[0].typ"),
        ({"columns": [f"c{n}" for n in range(1601)]}, "datasets[0].columns"),
        ({"filters": {"secret": ["eq"]}}, "datasets[0].filters.secret"),
        ({"filters": {"tenant_id": ["eq"]}}, "datasets[0].filters.tenant_id"),
        ({"filters": {"id": ["like"]}}, "datasets[0].filters.id"),
        ({"filters": {"id": []}}, "datasets[0].filters.id"),
        ({"row_limit": 0}, "datasets[0].row_limit"),
        ({"query_timeout_seconds": 0}, "datasets[0].query_timeout_seconds"),
        ({"row_limt": 5}, "datasets[0].row_limt"),
    ],
)
def test_a_wrong_declaration_is_named(changes, pointer):
    assert pointer in problems(table(**changes))


def test_the_tenant_column_may_be_exported_but_never_filtered():
    assert read(table(columns=["id", "tenant_id"]))
    assert "datasets[0].filters.tenant_id" in problems(
        table(columns=["id", "tenant_id"], filters={"tenant_id": ["eq"]})
    )


def test_two_datasets_cannot_share_a_name():
    assert "datasets[1].name" in problems(table(), table())


def test_all_problems_of_all_datasets_are_collected():
    found = problems(table(row_limit=-1, source="x"), table(name="b", key=[]), "no table")

    assert {"datasets[0].row_limit", "datasets[0].source", "datasets[1].key", "datasets[2]"} <= set(found)
