"""The filter language of requests: a condition in JSON becomes filters whose operators the dataset offers.

`"paid"` equals; `["a", "b"]` is one of; `null` is absent; `{"range": [from, to]}` is half open, either end may be null;
several operators in one object must all hold. Values are data: they are bound, never written into SQL.
"""

from dataclasses import dataclass

from tenure.core import limits
from tenure.core.dataset import Dataset, Filter, FilterOperator, Scalar
from tenure.core.fields import Path, Problems, Table, listed, suggestion, value_kind
from tenure.core.strict_json import INT_MAX, INT_MIN

_OPERATORS = tuple(operator.value for operator in FilterOperator)
_TEXT_OPERATORS = frozenset({FilterOperator.PREFIX, FilterOperator.CONTAINS})
_RANGE_ENDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison as asked for, well formed, not yet checked against a dataset. `path` is where it stands."""

    path: Path
    filter: Filter


def read_conditions(table: Table, name: str) -> tuple[Condition, ...]:
    """All conditions of the object at `name`; the badly formed ones are noted and left out."""
    if not table.has(name):
        return ()
    filters = table.table(name)
    reader = _Reader(table.problems)
    for column in filters.names():
        reader.read_column(column, filters.raw(column), (*filters.path, column))
    if len(reader.found) > limits.FILTERS_MAX:
        table.note(name, f"must hold at most {limits.FILTERS_MAX} conditions, not {len(reader.found)}")
    return tuple(reader.found)


def choose_filters(dataset: Dataset, conditions: tuple[Condition, ...], problems: Problems) -> tuple[Filter, ...]:
    """The conditions as filters of this dataset, in a stable order; those it does not offer are noted."""
    chosen = []
    for condition in conditions:
        wanted = condition.filter
        operators = dataset.filters.get(wanted.column, frozenset())
        if wanted.operator in operators:
            chosen.append(wanted)
        elif operators:
            offers = listed(sorted(operators))
            problems.note(condition.path, f'dataset "{dataset.name}" offers here only: {offers}')
        else:
            hint = suggestion(wanted.column, sorted(dataset.filters))
            problems.note(condition.path, f'dataset "{dataset.name}" offers no filter on this column.{hint}')
    # The order in which JSON names filters means nothing, so equal requests become equal selections.
    return tuple(sorted(chosen, key=lambda item: (item.column, item.operator, repr(item.values))))


class _Reader:
    """Collects conditions of one `filters` object."""

    def __init__(self, problems: Problems) -> None:
        self.found: list[Condition] = []
        self._problems = problems

    def read_column(self, column: str, value: object, path: Path) -> None:
        match value:
            case None:
                self._add(column, FilterOperator.NULL, (True,), path)
            case dict():
                self._read_operators(column, value, path)
            case list():
                self._read_one(column, FilterOperator.IN, value, path)
            case _:
                self._read_one(column, FilterOperator.EQ, value, path)

    def _read_operators(self, column: str, value: dict[str, object], path: Path) -> None:
        if not value:
            self._problems.note(path, f"must hold an operator. Allowed: {', '.join(_OPERATORS)}.")
        for name, operand in value.items():
            if name in _OPERATORS:
                self._read_one(column, FilterOperator(name), operand, (*path, name))
            else:
                self._problems.note((*path, name), f"is not an operator.{suggestion(name, _OPERATORS)}")

    def _read_one(self, column: str, operator: FilterOperator, operand: object, path: Path) -> None:
        match operator:
            case FilterOperator.IN:
                values = self._read_list(operand, path)
            case FilterOperator.RANGE:
                values = self._read_range(operand, path)
            case FilterOperator.NULL:
                values = self._read_null(operand, path)
            case _:
                values = self._read_single(operator, operand, path)
        if values is not None:
            self._add(column, operator, values, path)

    def _add(self, column: str, operator: FilterOperator, values: tuple[Scalar, ...], path: Path) -> None:
        self.found.append(Condition(path=path, filter=Filter(column=column, operator=operator, values=values)))

    def _read_list(self, operand: object, path: Path) -> tuple[Scalar, ...] | None:
        if not isinstance(operand, list) or not 1 <= len(operand) <= limits.FILTER_VALUES_MAX:
            self._problems.note(path, f"must be a list of 1 to {limits.FILTER_VALUES_MAX} values")
            return None
        return self._same_kind(operand, path)

    def _read_range(self, operand: object, path: Path) -> tuple[Scalar, ...] | None:
        if not isinstance(operand, list) or len(operand) != _RANGE_ENDS or operand == [None, None]:
            self._problems.note(path, "must be [from, to]: from is included, to is not, one of them may be null")
            return None
        ends = [end for end in operand if end is not None]
        if any(isinstance(end, bool) for end in ends):
            self._problems.note(path, "true and false have no order")
            return None
        return tuple(operand) if self._same_kind(ends, path) is not None else None

    def _read_null(self, operand: object, path: Path) -> tuple[Scalar, ...] | None:
        if isinstance(operand, bool):
            return (operand,)
        self._problems.note(path, f"must be true or false, not {value_kind(operand)}")
        return None

    def _read_single(self, operator: FilterOperator, operand: object, path: Path) -> tuple[Scalar, ...] | None:
        if operator in _TEXT_OPERATORS and not (isinstance(operand, str) and operand):
            self._problems.note(path, "must be non-empty text")
            return None
        return self._same_kind([operand], path)

    def _same_kind(self, values: list[object], path: Path) -> tuple[Scalar, ...] | None:
        """The values, when each is one a filter can carry and all are of one kind: text, numbers, or true/false."""
        details = sorted({detail for value in values if (detail := _value_problem(value))})
        if not details and len({_kind(value) for value in values}) > 1:
            details = ["must be values of one kind: all text, all numbers, or all true/false"]
        if details:
            self._problems.note(path, "; ".join(details))
            return None
        return tuple(value for value in values if isinstance(value, (str, int, float)))


def _value_problem(value: object) -> str | None:
    match value:
        case str() if "\0" in value:
            return "must not hold a NUL character"
        case str() if len(value) > limits.FILTER_VALUE_CHARS_MAX:
            return f"must be at most {limits.FILTER_VALUE_CHARS_MAX} characters"
        case int() if not INT_MIN <= value <= INT_MAX:
            return "must be a number of at most 64 bits"
        case str() | int() | float():
            return None
        case None:
            return 'must be text, a number or true/false; to ask for null use {"null": true}'
        case _:
            return f"must be text, a number or true/false, not {value_kind(value)}"


def _kind(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
