"""Liveness and readiness. Neither needs a key, so neither tells more than yes or no."""

from starlette.requests import Request
from starlette.responses import Response

from tenure.api.answers import json_answer
from tenure.api.documents import HealthDocument
from tenure.api.problems import UNAVAILABLE_RETRY_SECONDS
from tenure.api.services import Services


class HealthRoutes:
    """Handlers."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def live(self, _: Request) -> Response:
        """The process answers; it says nothing about the database, so that a database outage restarts nothing."""
        return json_answer(HealthDocument(status="ok"))

    async def ready(self, _: Request) -> Response:
        checks = dict(await self._services.check_ready())
        if all(checks.values()):
            return json_answer(HealthDocument(status="ok", checks=checks))
        headers = {"Retry-After": str(UNAVAILABLE_RETRY_SECONDS)}
        return json_answer(HealthDocument(status="not ready", checks=checks), 503, headers=headers)
