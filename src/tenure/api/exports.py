"""`/v1/exports` and `/v1/datasets`: ask for exports, watch, list and cancel them."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from tenure.api.answers import json_answer, validated_answer
from tenure.api.documents import (
    UNFINISHED,
    DatasetList,
    ExportList,
    dataset_document,
    export_document,
    export_summary,
    poll_seconds,
)
from tenure.api.reading import (
    read_body,
    read_export_id,
    read_page,
    read_principal,
    read_query,
    require_json_accepted,
    write_cursor,
)
from tenure.api.services import Services
from tenure.core.export import Compression, ExportView, Format
from tenure.core.ids import TenantId
from tenure.core.keys import Scope
from tenure.exports.request import read_request


class ExportRoutes:
    """Handlers; every one acts for the tenant of the key that was sent and for no other."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def create(self, request: Request) -> Response:
        """202 for a new export, 200 for the identical one that is under way."""
        principal = await read_principal(request, self._services)
        tenant_id = principal.tenant_for(Scope.EXPORTS_EXECUTE)
        require_json_accepted(request.headers)
        read_query(request)
        body = await read_body(request)
        services = self._services
        # Off the loop: reading a 64 KB request takes milliseconds, in which no other caller would be served.
        spec = await asyncio.to_thread(read_request, body, services.catalogue, link_seconds=services.link_seconds)
        admission = await services.admit(tenant_id, principal.key_id, spec)
        return self._answer(admission.view, 202 if admission.created else 200)

    async def show(self, request: Request) -> Response:
        """200 as long as the record exists, whatever became of the export."""
        tenant_id = await self._reader(request)
        read_query(request)
        view = await self._services.find_export(tenant_id, read_export_id(request))
        document = export_document(view, self._services)
        return validated_answer(document, request.headers, headers=self._retry_after(view))

    async def list(self, request: Request) -> Response:
        tenant_id = await self._reader(request)
        limit, before = read_page(request)
        # One more than asked for tells whether there is a next page.
        views = await self._services.list_exports(tenant_id, limit + 1, before)
        shown = views[:limit]
        cursor = write_cursor(shown[-1].id) if len(views) > limit else None
        return json_answer(ExportList(items=tuple(map(export_summary, shown)), next_cursor=cursor))

    async def cancel(self, request: Request) -> Response:
        """202 while the worker still has to see it, 200 when it is over; asking twice changes nothing."""
        principal = await read_principal(request, self._services)
        tenant_id = principal.tenant_for(Scope.EXPORTS_EXECUTE)
        require_json_accepted(request.headers)
        read_query(request)
        view = await self._services.cancel_export(tenant_id, read_export_id(request), principal.key_id)
        return self._answer(view, 202 if view.status in UNFINISHED else 200)

    async def datasets(self, request: Request) -> Response:
        await self._reader(request)
        read_query(request)
        document = DatasetList(
            datasets=tuple(map(dataset_document, self._services.catalogue.datasets.values())),
            formats=tuple(Format),
            compressions=tuple(Compression),
        )
        return validated_answer(document, request.headers)

    async def _reader(self, request: Request) -> TenantId:
        principal = await read_principal(request, self._services)
        tenant_id = principal.tenant_for(Scope.EXPORTS_READ)
        require_json_accepted(request.headers)
        return tenant_id

    def _answer(self, view: ExportView, status: int) -> Response:
        headers = {"Location": f"/v1/exports/{view.id}", **self._retry_after(view)}
        return json_answer(export_document(view, self._services), status, headers=headers)

    def _retry_after(self, view: ExportView) -> dict[str, str]:
        """Whole seconds only: widespread clients misread the date form."""
        seconds = poll_seconds(view, self._services.now())
        return {"Retry-After": str(seconds)} if seconds else {}
