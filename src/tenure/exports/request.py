"""Reads a customer's request against the catalogue: the result holds nothing that the catalogue does not offer.

Pure. Every wrong field is named at once, by JSON pointer, with what is allowed in its place. Names the catalogue does
not offer are answered alike whether or not the source has them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tenure.core import limits
from tenure.core.dataset import Catalogue, Dataset, Selection
from tenure.core.errors import FieldProblem, InvalidRequestError
from tenure.core.export import Channel, Compression, Delivery, ExportSpec, Format
from tenure.core.fields import Path, Problems, Table, json_pointer, shown, suggestion, value_kind
from tenure.core.strict_json import UnreadableJsonError, decode_strict
from tenure.exports.conditions import Condition, choose_filters, read_conditions

DELIVERIES_MAX = 10
URL_CHARS_MAX = 2_048
LINK_SECONDS_MIN = 60

# Visible ASCII only: international host names come as punycode, other characters percent-encoded.
_URL_TEXT = re.compile(r"[!-~]+", re.ASCII)


class MalformedRequestError(InvalidRequestError):
    """The body is not one unambiguous JSON text; nothing in it was looked at further."""

    code = "malformed_request"
    title = "Malformed request"
    what_to_do = "Send one JSON object in UTF-8, without duplicate keys, NaN or lone surrogates."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One dataset the caller chose: where the choice stands in the request, and its own columns and filters."""

    dataset: Dataset
    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()


def read_request(body: bytes, catalogue: Catalogue, *, link_seconds: int = limits.LINK_SECONDS_DEFAULT) -> ExportSpec:
    """What the body asks for. `link_seconds` is what links last when the request does not say.

    Raises MalformedRequestError when the body is not strict JSON, InvalidRequestError when a field is wrong.
    """
    problems = Problems(json_pointer)
    request = Table(_decode(body), (), problems)
    spec = ExportSpec(
        selections=_read_selections(request, catalogue),
        format=request.choice("format", Format.CSV),
        compression=request.choice("compression", Compression.NONE),
        deliveries=_read_deliveries(request),
        link_seconds=request.whole("link_seconds", link_seconds, low=LINK_SECONDS_MIN, high=limits.LINK_SECONDS_MAX),
    )
    request.refuse_unknown()
    if problems.found():
        raise InvalidRequestError(*problems.found())
    return spec


def _decode(body: bytes) -> object:
    problems = Problems(json_pointer)
    try:
        value = decode_strict(body, problems)
    except UnreadableJsonError as error:
        raise MalformedRequestError(FieldProblem(pointer="", detail=str(error))) from None
    if problems.found():
        raise MalformedRequestError(*problems.found())
    return value


def _read_selections(request: Table, catalogue: Catalogue) -> tuple[Selection, ...]:
    choices = _read_choices(request, catalogue.datasets)
    shared_columns = _read_shared_columns(request, choices)
    shared = read_conditions(request, "filters")
    selections = []
    for choice in choices:
        filters = choose_filters(choice.dataset, (*shared, *choice.conditions), request.problems)
        columns = choice.columns or shared_columns or choice.dataset.column_names()
        selections.append(Selection(dataset=choice.dataset.name, columns=columns, filters=filters))
    return tuple(selections)


def _read_choices(request: Table, offered: Mapping[str, Dataset]) -> list[_Choice]:
    """The chosen datasets in the caller's order; all of the catalogue when the request names none."""
    if request.has("dataset") and request.has("datasets"):
        request.note("datasets", "give either dataset or datasets, not both")
    if request.has("dataset"):
        dataset = _find_dataset(request.raw("dataset"), offered, ("dataset",), request.problems)
        return [_Choice(dataset=dataset)] if dataset else []
    if request.has("datasets"):
        return _read_dataset_list(request, offered)
    if not offered:
        request.problems.note((), "this server offers no datasets")
    return [_Choice(dataset=dataset) for dataset in offered.values()]


def _read_dataset_list(request: Table, offered: Mapping[str, Dataset]) -> list[_Choice]:
    items = request.items("datasets")
    if isinstance(request.raw("datasets"), list) and not 1 <= len(items) <= limits.DATASETS_PER_EXPORT_MAX:
        request.note("datasets", f"must name 1 to {limits.DATASETS_PER_EXPORT_MAX} datasets")
        return []
    choices: dict[str, _Choice] = {}
    for index, item in enumerate(items):
        choice = _read_choice(item, offered, ("datasets", index), request.problems)
        if choice and choice.dataset.name in choices:
            request.problems.note(("datasets", index), f"{shown(choice.dataset.name)} is named more than once")
        if choice:
            choices[choice.dataset.name] = choice
    return list(choices.values())


def _read_choice(item: object, offered: Mapping[str, Dataset], path: Path, problems: Problems) -> _Choice | None:
    if not isinstance(item, dict):
        dataset = _find_dataset(item, offered, path, problems)
        return _Choice(dataset=dataset) if dataset else None
    table = Table(item, path, problems)
    if not table.has("name"):
        table.note("name", "is required")
        return None
    dataset = _find_dataset(table.raw("name"), offered, (*path, "name"), problems)
    columns = _read_columns(table, dataset) if dataset else None
    table.has("columns")
    conditions = read_conditions(table, "filters")
    table.refuse_unknown()
    return _Choice(dataset=dataset, columns=columns, conditions=conditions) if dataset else None


def _find_dataset(name: object, offered: Mapping[str, Dataset], path: Path, problems: Problems) -> Dataset | None:
    if not isinstance(name, str):
        problems.note(path, f"must be a dataset's name, not {value_kind(name)}")
        return None
    if name not in offered:
        problems.note(path, f"no dataset {shown(name)} is offered.{suggestion(name, sorted(offered))}")
    return offered.get(name)


def _read_shared_columns(request: Table, choices: list[_Choice]) -> tuple[str, ...] | None:
    """Top-level `columns`: they only make sense for one dataset."""
    if not request.has("columns") or not choices:
        return None
    if len(choices) > 1:
        request.note("columns", "is for one dataset; with several, give columns beside each name in datasets")
        return None
    if choices[0].columns:
        request.note("columns", "is given for this dataset already, in datasets")
        return None
    return _read_columns(request, choices[0].dataset)


def _read_columns(table: Table, dataset: Dataset) -> tuple[str, ...] | None:
    """Columns in the caller's order; None when not given or wrong."""
    if not table.has("columns"):
        return None
    columns = table.texts("columns")
    offered = dataset.column_names()
    if table.raw("columns") == []:
        table.note("columns", "must name at least one column; leave it out for all of them")
    for column in columns:
        if column not in offered:
            where = f"dataset {shown(dataset.name)} offers no column {shown(column)}"
            table.note("columns", f"{where}.{suggestion(column, offered)}")
    return columns or None


def _read_deliveries(request: Table) -> tuple[Delivery, ...]:
    """One object or a list of them; a plain download when none is given."""
    if not request.has("delivery"):
        return (Delivery(),)
    value = request.raw("delivery")
    items = value if isinstance(value, list) else [value]
    if not 1 <= len(items) <= DELIVERIES_MAX:
        request.note("delivery", f"must be one delivery or a list of 1 to {DELIVERIES_MAX}")
        return ()
    deliveries = []
    for index, item in enumerate(items):
        path: Path = ("delivery", index) if isinstance(value, list) else ("delivery",)
        delivery = _read_delivery(item, path, request.problems)
        if delivery and delivery in deliveries:
            request.problems.note(path, "is given more than once")
        if delivery:
            deliveries.append(delivery)
    return tuple(deliveries)


def _read_delivery(item: object, path: Path, problems: Problems) -> Delivery | None:
    if not isinstance(item, dict):
        problems.note(path, f'must be an object such as {{"type": "download"}}, not {value_kind(item)}')
        return None
    table = Table(item, path, problems)
    if not table.has("type"):
        table.note("type", f"is required. Allowed: {', '.join(Channel)}.")
        return None
    channel = table.choice("type", Channel.DOWNLOAD)
    url: str | None = None
    if channel is Channel.WEBHOOK:
        url = table.required_text("url")
        if url and (detail := _url_problem(url)):
            table.note("url", detail)
    table.refuse_unknown()
    return Delivery(channel=channel, url=url)


def _url_problem(url: str) -> str | None:  # noqa: PLR0911  one refusal per line
    """What is wrong with the address as text; the egress guard judges where it leads, when it is called."""
    if len(url) > URL_CHARS_MAX:
        return f"must be at most {URL_CHARS_MAX} characters"
    # Checked first: urlsplit silently drops tabs and line breaks.
    if not _URL_TEXT.fullmatch(url) or "\\" in url:
        return "must be plain ASCII without spaces; write an international host as punycode"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in {"http", "https"}:
        return "must start with https:// or http://"
    if not parts.hostname or port == 0:
        return "must name a host"
    if "@" in parts.netloc:
        return "must not carry a user name or password"
    if "#" in url:
        return "must not have a fragment"
    return None
