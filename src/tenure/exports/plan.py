"""Decides what will be read, before anything heavy is done: columns, exact counts, row limits, file names."""

from collections.abc import Mapping
from dataclasses import dataclass

from tenure.core.dataset import Catalogue, Dataset, Selection
from tenure.core.errors import FieldProblem, InvalidRequestError, RowLimitExceededError
from tenure.core.export import ExportOrder
from tenure.core.manifest import Dialect
from tenure.encoders.csv import csv_dialect, file_name
from tenure.sources.postgres import PostgresSource
from tenure.sources.request import ReadRequest, SourceColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One file to make: what to read for it, its columns in file order, and how many rows it must hold."""

    name: str
    request: ReadRequest
    columns: tuple[SourceColumn, ...]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All files of the package, in the order of the request."""

    dialect: Dialect
    files: tuple[PlannedFile, ...]
    rows: int
    sources: int
    """How many source databases are read; each gives one view."""


def read_requests(order: ExportOrder, catalogue: Catalogue) -> tuple[ReadRequest, ...]:
    """The order's selections, checked once more: the catalogue may have changed since it was admitted.

    Raises InvalidRequestError; nothing it does not name can be read.
    """
    names = [selection.dataset for selection in order.spec.selections]
    problems = [_problem(name, "chosen twice") for name in sorted(set(names)) if names.count(name) > 1]
    for selection in order.spec.selections:
        dataset = catalogue.datasets.get(selection.dataset)
        if dataset is None:
            problems.append(_problem(selection.dataset, "not in the catalogue"))
        else:
            problems.extend(_selection_problems(dataset, selection))
    if problems or not names:
        raise InvalidRequestError(*(problems or [FieldProblem(pointer="/datasets", detail="none chosen")]))
    return tuple(
        ReadRequest(
            dataset=catalogue.datasets[selection.dataset],
            selection=selection,
            tenant_id=order.tenant_id,
            cutoff=order.cutoff,
        )
        for selection in order.spec.selections
    )


def plan_export(
    order: ExportOrder,
    requests: tuple[ReadRequest, ...],
    sources: Mapping[str, PostgresSource],
) -> Plan:
    """Check and count everything, in the views that will be read.

    Raises RowLimitExceededError before any row is read, and what the sources raise.
    """
    dialect = csv_dialect(order.settings)
    files = tuple(_plan_file(order, request, sources[request.dataset.source]) for request in requests)
    return Plan(dialect=dialect, files=files, rows=sum(file.rows for file in files), sources=len(sources))


def _plan_file(order: ExportOrder, request: ReadRequest, source: PostgresSource) -> PlannedFile:
    columns = source.columns(request.dataset)
    source.check(request)
    rows = source.count(request)
    limit = request.dataset.row_limit
    if rows > limit:
        raise RowLimitExceededError(
            f'dataset "{request.dataset.name}" has {rows} rows for this request; its row limit is {limit}',
        )
    return PlannedFile(
        name=file_name(request.dataset.name, order.spec.compression),
        request=request,
        columns=tuple(columns[name] for name in request.selection.columns),
        rows=rows,
    )


def _selection_problems(dataset: Dataset, selection: Selection) -> list[FieldProblem]:
    offered = dataset.column_names()
    problems = [
        _problem(dataset.name, f'no column "{column}"') for column in selection.columns if column not in offered
    ]
    if not selection.columns:
        problems.append(_problem(dataset.name, "no columns chosen"))
    problems.extend(
        _problem(dataset.name, f'no filter "{given.operator}" on column "{given.column}"')
        for given in selection.filters
        if given.operator not in dataset.filters.get(given.column, frozenset())
    )
    return problems


def _problem(dataset: str, detail: str) -> FieldProblem:
    return FieldProblem(pointer=f"/datasets/{dataset}", detail=detail)
