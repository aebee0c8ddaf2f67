"""Every address of the API, once: the app is routed and the OpenAPI document is written from this table."""

from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from tenure.api.documents import (
    DatasetList,
    ErrorDocument,
    ErrorList,
    ExportDocument,
    ExportList,
    HealthDocument,
)
from tenure.api.operator_documents import (
    FairnessDocument,
    LaneList,
    LaneSettingsDocument,
    QueueList,
    QueueSettingsDocument,
    WhyDocument,
)
from tenure.core.keys import Scope

FILE = "file"
PAGE = "page"
KEYED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Statuses of every address that needs a key."""
JSON_ONLY = (HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Statuses of every address under /v1 that answers in JSON: its Accept header and its query are checked."""
FILE_STATUSES = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one address. `answers` maps each success to its document, or to FILE, PAGE or None for no body."""

    id: str
    method: str
    path: str
    summary: str
    answers: dict[int, type[msgspec.Struct] | str | None]
    scope: Scope | None = None
    body: str | None = None
    """Name of the schema of its body in the description."""
    query: tuple[str, ...] = ()
    problems: tuple[int, ...] = ()


OPERATIONS = (
    Operation(
        id="createExport",
        method="POST",
        path="/v1/exports",
        summary="Ask for an export. 200: the identical request is under way already, and this is it.",
        answers={202: ExportDocument, 200: ExportDocument},
        scope=Scope.EXPORTS_EXECUTE,
        body="ExportRequest",
        problems=(*KEYED, *JSON_ONLY, 400, 409, 413, 415),
    ),
    Operation(
        id="listExports",
        method="GET",
        path="/v1/exports",
        summary="Your exports, newest first.",
        answers={200: ExportList},
        scope=Scope.EXPORTS_READ,
        query=("limit", "cursor"),
        problems=(*KEYED, *JSON_ONLY),
    ),
    Operation(
        id="getExport",
        method="GET",
        path="/v1/exports/{export_id}",
        summary="One export; always 200 while its record exists, whatever became of it.",
        answers={200: ExportDocument, 304: None},
        scope=Scope.EXPORTS_READ,
        problems=(*KEYED, *JSON_ONLY, 404),
    ),
    Operation(
        id="deleteExport",
        method="DELETE",
        path="/v1/exports/{export_id}",
        summary="Cancel an export; the same as POST .../cancel.",
        answers={202: ExportDocument, 200: ExportDocument},
        scope=Scope.EXPORTS_EXECUTE,
        problems=(*KEYED, *JSON_ONLY, 404, 409),
    ),
    Operation(
        id="cancelExport",
        method="POST",
        path="/v1/exports/{export_id}/cancel",
        summary="Cancel an export. 202: the worker is told; 200: it is over. Asking twice changes nothing.",
        answers={202: ExportDocument, 200: ExportDocument},
        scope=Scope.EXPORTS_EXECUTE,
        problems=(*KEYED, *JSON_ONLY, 404, 409),
    ),
    Operation(
        id="getExportFile",
        method="GET",
        path="/v1/exports/{export_id}/files/{file}",
        summary="Download a file of a finished export with your key.",
        answers={200: FILE, 206: FILE, 304: None},
        scope=Scope.EXPORTS_READ,
        problems=(*KEYED, *FILE_STATUSES),
    ),
    Operation(
        id="getDownload",
        method="GET",
        path="/v1/downloads/{export_id}/{file}",
        summary="Download a file through a signed link; no key is needed.",
        answers={200: FILE, 206: FILE, 304: None},
        query=("tenant", "expires", "kid", "signature"),
        problems=(403, *FILE_STATUSES),
    ),
    Operation(
        id="listDatasets",
        method="GET",
        path="/v1/datasets",
        summary="The datasets, columns and filters a request can choose from.",
        answers={200: DatasetList, 304: None},
        scope=Scope.EXPORTS_READ,
        problems=(*KEYED, *JSON_ONLY),
    ),
    Operation(
        id="explainJob",
        method="GET",
        path="/v1/jobs/{job_id}/why",
        summary="Why a job, an export's too, is where it is, and where its time went. Operators may ask for any.",
        answers={200: WhyDocument},
        scope=Scope.EXPORTS_READ,
        problems=(*KEYED, *JSON_ONLY, 404),
    ),
    Operation(
        id="listQueues",
        method="GET",
        path="/v1/queues",
        summary="Every queue: settings, what it runs, what waits, its workers.",
        answers={200: QueueList},
        scope=Scope.OPERATOR,
        problems=(*KEYED, *JSON_ONLY),
    ),
    Operation(
        id="tuneQueue",
        method="PATCH",
        path="/v1/queues/{queue}",
        summary="Change slots, headroom or pause of a queue; it acts at once.",
        answers={200: QueueSettingsDocument},
        scope=Scope.OPERATOR,
        body="QueueChanges",
        problems=(*KEYED, *JSON_ONLY, 400, 404, 413, 415),
    ),
    Operation(
        id="listLanes",
        method="GET",
        path="/v1/queues/{queue}/tenants",
        summary="The tenants of a queue by id: settings, what they run, what waits, how far ahead they are.",
        answers={200: LaneList},
        scope=Scope.OPERATOR,
        query=("limit", "cursor"),
        problems=(*KEYED, *JSON_ONLY, 404),
    ),
    Operation(
        id="tuneLane",
        method="PATCH",
        path="/v1/queues/{queue}/tenants/{tenant}",
        summary="Change weight, cap, ceiling or pause of a tenant in a queue; it acts at once on what waits already.",
        answers={200: LaneSettingsDocument},
        scope=Scope.OPERATOR,
        body="LaneChanges",
        problems=(*KEYED, *JSON_ONLY, 400, 404, 413, 415),
    ),
    Operation(
        id="getFairness",
        method="GET",
        path="/v1/fairness",
        summary="How worker time was shared lately, by queue and tenant.",
        answers={200: FairnessDocument},
        scope=Scope.OPERATOR,
        query=("since", "queue"),
        problems=(*KEYED, *JSON_ONLY, 404),
    ),
    Operation(
        id="getHealth", method="GET", path="/healthz", summary="This process answers.", answers={200: HealthDocument}
    ),
    Operation(
        id="getReadiness",
        method="GET",
        path="/readyz",
        summary="This server can work; 503 with the same body while it cannot.",
        answers={200: HealthDocument, 503: HealthDocument},
    ),
    Operation(id="listErrors", method="GET", path="/errors", summary="Every error code.", answers={200: ErrorList}),
    Operation(
        id="getError",
        method="GET",
        path="/errors/{code}",
        summary="What one error code means.",
        answers={200: ErrorDocument},
        problems=(404,),
    ),
    Operation(id="getOpenApi", method="GET", path="/openapi.json", summary="This description.", answers={200: None}),
    Operation(id="showFront", method="GET", path="/", summary="The front page.", answers={200: PAGE}),
    Operation(id="showConsole", method="GET", path="/console", summary="The operators' console.", answers={200: PAGE}),
)
