"""Builds the HTTP application from the services it needs."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from tenure.api import pages
from tenure.api.boundary import Boundary
from tenure.api.downloads import DownloadRoutes
from tenure.api.exports import ExportRoutes
from tenure.api.health import HealthRoutes
from tenure.api.openapi import openapi_document
from tenure.api.operations import OPERATIONS
from tenure.api.operator import OperatorRoutes
from tenure.api.problems import MethodNotAllowedError, SurfaceError, problem_response, status_of
from tenure.api.services import Services
from tenure.core.errors import FieldProblem, InvalidRequestError, NotFoundError, TenureError

Handler = Callable[[Request], Awaitable[Response]]

INTERNAL_STATUS = 500


class TenureApi(FastAPI):
    """FastAPI whose description is the table of operations instead of what it could guess from handlers."""

    def openapi(self) -> dict[str, object]:
        return openapi_document()


def create_app(services: Services) -> FastAPI:
    """The application. It opens nothing: what `services` need open is their owner's to open and close."""
    app = TenureApi(
        title="Tenure",
        version=version("tenure"),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    handlers = _handlers(services)
    for operation in OPERATIONS:
        app.add_route(operation.path, handlers[operation.id], methods=[operation.method], name=operation.id)
    app.add_exception_handler(TenureError, _answer_tenure_error)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_exception_handler(RequestValidationError, _answer_validation_error)
    app.add_middleware(Boundary)
    return app


def _handlers(services: Services) -> dict[str, Handler]:
    """Operation id -> handler. A missing one fails at start, in `create_app`."""
    exports, downloads, health = ExportRoutes(services), DownloadRoutes(services), HealthRoutes(services)
    operator = OperatorRoutes(services)
    return {
        "createExport": exports.create,
        "listExports": exports.list,
        "getExport": exports.show,
        "deleteExport": exports.cancel,
        "cancelExport": exports.cancel,
        "getExportFile": downloads.with_key,
        "getDownload": downloads.with_link,
        "listDatasets": exports.datasets,
        "explainJob": operator.why,
        "listQueues": operator.queues,
        "tuneQueue": operator.tune_queue,
        "listLanes": operator.lanes,
        "tuneLane": operator.tune_lane,
        "getFairness": operator.fairness,
        "getHealth": health.live,
        "getReadiness": health.ready,
        "listErrors": pages.list_errors,
        "getError": pages.show_error,
        "getOpenApi": _show_openapi,
        "showFront": pages.show_front,
        "showConsole": pages.show_console,
    }


async def _show_openapi(_: Request) -> Response:
    return Response(msgspec.json.encode(openapi_document()), media_type="application/json")


async def _answer_tenure_error(_: Request, error: Exception) -> Response:
    # Trouble of the server's own goes on to the boundary, which logs it under an incident id.
    if not isinstance(error, TenureError) or status_of(error) >= INTERNAL_STATUS:
        raise error
    return problem_response(error)


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    """What Starlette raises itself: unknown addresses, wrong methods, requests it cannot parse."""
    status = error.status_code if isinstance(error, HTTPException) else INTERNAL_STATUS
    if status == 404:  # noqa: PLR2004
        return problem_response(NotFoundError("address"))
    if status == 405:  # noqa: PLR2004
        return _answer_wrong_method(request)
    if status < INTERNAL_STATUS:
        return problem_response(SurfaceError("the request could not be read"))
    raise error


def _answer_wrong_method(request: Request) -> Response:
    """405 with every method the address has, from all its routes; OPTIONS is answered with them."""
    allowed = {"OPTIONS"}
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            allowed |= route.methods or set()
    headers = {"Allow": ", ".join(sorted(allowed))}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    return problem_response(MethodNotAllowedError(f"{request.method} is not allowed here", headers=headers))


async def _answer_validation_error(_: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    problems = [
        FieldProblem(pointer="/" + "/".join(str(step) for step in item["loc"][1:]), detail=str(item["msg"]))
        for item in found
    ]
    return problem_response(InvalidRequestError(*problems))
