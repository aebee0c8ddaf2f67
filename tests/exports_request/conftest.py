import pytest

from tenure.core.dataset import Catalogue, Column, Dataset, FilterOperator


def dataset(name, columns, filters):
    return Dataset(
        name=name,
        source="shop",
        query="SELECT 1",
        tenant_column="tenant_id",
        key=("id",),
        columns=tuple(Column(name=column) for column in columns),
        filters={column: frozenset(map(FilterOperator, operators)) for column, operators in filters.items()},
    )


@pytest.fixture(scope="session")
def catalogue():
    every = [operator.value for operator in FilterOperator]
    return Catalogue(
        datasets={
            "events": dataset("events", ["id", "kind", "at"], {"kind": every, "at": ["range"], "id": ["eq", "in"]}),
            "orders": dataset("orders", ["id", "total", "kind"], {"kind": ["eq"], "total": ["eq", "range"]}),
        }
    )
