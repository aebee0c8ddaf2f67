"""The OpenAPI 3.1 document, made from the table of operations and the documents' own types."""

import re
from functools import cache
from http import HTTPStatus
from importlib.metadata import version

import msgspec

from tenure.api.operations import FILE, OPERATIONS, PAGE, Operation
from tenure.api.problems import PROBLEM_MEDIA_TYPE, ProblemDocument
from tenure.core import limits, tuning
from tenure.core.export import Channel, Compression, Format
from tenure.exports.request import DELIVERIES_MAX, LINK_SECONDS_MIN, URL_CHARS_MAX

Json = dict[str, object]

SCALAR: Json = {"type": ["string", "number", "boolean"]}
CONDITION: Json = {
    "description": "A value (equals), a list (one of), null (is null), or operators that must all hold.",
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": SCALAR, "minItems": 1, "maxItems": limits.FILTER_VALUES_MAX},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                "eq": SCALAR,
                "ne": SCALAR,
                "in": {"type": "array", "items": SCALAR, "minItems": 1, "maxItems": limits.FILTER_VALUES_MAX},
                "range": {
                    "description": "[from, to): from is included, to is not; one of them may be null.",
                    "type": "array",
                    "items": {"type": ["string", "number", "null"]},
                    "minItems": 2,
                    "maxItems": 2,
                },
                "null": {"type": "boolean"},
                "prefix": {"type": "string", "minLength": 1},
                "contains": {"type": "string", "minLength": 1},
            },
        },
    ],
}
FILTERS: Json = {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Condition"}}
COLUMNS: Json = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
DELIVERY: Json = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type"],
            "additionalProperties": False,
            "properties": {"type": {"const": Channel.DOWNLOAD.value}},
        },
        {
            "type": "object",
            "required": ["type", "url"],
            "additionalProperties": False,
            "properties": {
                "type": {"const": Channel.WEBHOOK.value},
                "url": {"type": "string", "format": "uri", "maxLength": URL_CHARS_MAX},
            },
        },
    ]
}
CHOICE: Json = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "columns": COLUMNS, "filters": FILTERS},
}
EXPORT_REQUEST: Json = {
    "description": "Give `dataset`, or `datasets`, or neither for all of them.",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "format": {"enum": [item.value for item in Format], "default": Format.CSV.value},
        "compression": {"enum": [item.value for item in Compression], "default": Compression.NONE.value},
        "dataset": {"type": "string"},
        "datasets": {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, CHOICE]},
            "minItems": 1,
            "maxItems": limits.DATASETS_PER_EXPORT_MAX,
        },
        "columns": {**COLUMNS, "description": "Only with one dataset."},
        "filters": {**FILTERS, "description": "For every chosen dataset."},
        "delivery": {
            "anyOf": [
                {"$ref": "#/components/schemas/Delivery"},
                {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/Delivery"},
                    "minItems": 1,
                    "maxItems": DELIVERIES_MAX,
                },
            ]
        },
        "link_seconds": {"type": "integer", "minimum": LINK_SECONDS_MIN, "maximum": limits.LINK_SECONDS_MAX},
    },
}
LIMIT: Json = {
    "description": "null lifts the limit.",
    "type": ["integer", "null"],
    "minimum": 0,
    "maximum": tuning.COUNT_MAX,
}
LANE_CHANGES: Json = {
    "description": "What is left out stays as it is.",
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "weight": {"type": "number", "minimum": tuning.WEIGHT_MIN, "maximum": tuning.WEIGHT_MAX},
        "cap": LIMIT,
        "ceiling": LIMIT,
        "paused": {"type": "boolean"},
    },
}
QUEUE_CHANGES: Json = {
    "description": "What is left out stays as it is.",
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "slots": LIMIT,
        "headroom": {"type": "integer", "minimum": 0, "maximum": tuning.COUNT_MAX},
        "paused": {"type": "boolean"},
    },
}
QUERY_SCHEMAS: dict[str, Json] = {
    "queue": {"type": "string"},
    "since": {"type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "default": "1h"},
    "limit": {"type": "integer", "minimum": 1, "maximum": limits.LIST_COUNT_MAX},
    "cursor": {"type": "string"},
    "tenant": {"type": "string"},
    "expires": {"type": "integer"},
    "kid": {"type": "string"},
    "signature": {"type": "string"},
}
OPTIONAL_QUERY = frozenset({"limit", "cursor", "since", "queue"})


@cache
def openapi_document() -> Json:
    """The whole document."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tenure",
            "version": version("tenure"),
            "description": "Data exports for multi-tenant products.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "tnr_live_..."}},
        },
    }


def _schemas() -> Json:
    documents = {
        item: None for operation in OPERATIONS for item in operation.answers.values() if isinstance(item, type)
    }
    _, components = msgspec.json.schema_components(
        [*documents, ProblemDocument], ref_template="#/components/schemas/{name}"
    )
    written = {
        "Condition": CONDITION,
        "Delivery": DELIVERY,
        "ExportRequest": EXPORT_REQUEST,
        "LaneChanges": LANE_CHANGES,
        "QueueChanges": QUEUE_CHANGES,
    }
    return {**components, **written}


def _operation(operation: Operation) -> Json:
    described: Json = {
        "operationId": operation.id,
        "summary": operation.summary,
        "security": [{"key": []}] if operation.scope else [],
        "responses": {
            **{str(status): _answer(status, item) for status, item in operation.answers.items()},
            **{str(int(status)): _problem(status) for status in sorted(operation.problems)},
            "default": {"description": "Any other error.", "content": _content(PROBLEM_MEDIA_TYPE, ProblemDocument)},
        },
    }
    if operation.scope:
        described["description"] = f"Needs a key with the scope `{operation.scope}`."
    if parameters := _parameters(operation):
        described["parameters"] = parameters
    if operation.body:
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _parameters(operation: Operation) -> list[Json]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    in_query = [
        {"name": name, "in": "query", "required": name not in OPTIONAL_QUERY, "schema": QUERY_SCHEMAS[name]}
        for name in operation.query
    ]
    return [*in_path, *in_query]


def _answer(status: int, item: type[msgspec.Struct] | str | None) -> Json:
    described: Json = {"description": HTTPStatus(status).phrase}
    if item == FILE:
        described["content"] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    elif item == PAGE:
        described["content"] = {"text/html": {"schema": {"type": "string"}}}
    elif isinstance(item, type):
        described["content"] = _content("application/json", item)
    return described


def _problem(status: int) -> Json:
    return {"description": HTTPStatus(status).phrase, "content": _content(PROBLEM_MEDIA_TYPE, ProblemDocument)}


def _content(media_type: str, document: type[msgspec.Struct]) -> Json:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{document.__name__}"}}}
