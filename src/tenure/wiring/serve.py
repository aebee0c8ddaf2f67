"""The two long-running processes: the API server and the worker. Each runs until a signal stops it."""

import asyncio
import signal
from collections.abc import Mapping

import uvicorn

from tenure.api.app import create_app
from tenure.api.services import Services
from tenure.core.errors import DatabaseUnavailableError
from tenure.engine.worker import Chore, Worker, WorkerOptions
from tenure.exports.download import DownloadRecord
from tenure.exports.expire import expire_packages
from tenure.store.database import Database
from tenure.store.migrate import check_schema
from tenure.wiring import assemble
from tenure.wiring.facts import log_fact
from tenure.wiring.operator import Operator
from tenure.wiring.settings import Settings

EXPIRE_SECONDS = 60.0


async def serve_api(settings: Settings) -> None:
    """Serve HTTP until SIGINT or SIGTERM; running answers are finished first."""
    async with Database(assemble.database_settings(settings), name="tenure api") as database:
        await _check(database)
        config = uvicorn.Config(
            create_app(_services(settings, database)),
            host=settings.api.host,
            port=settings.api.port,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        await uvicorn.Server(config).serve()


async def run_worker(settings: Settings) -> None:
    """Work until stopped: the first SIGINT or SIGTERM lets jobs finish, the second hands them back at once."""
    public_url = settings.api.base_url(settings.api.port)
    kinds = assemble.kinds(settings, courier=assemble.courier(settings, public_url))
    async with Database(assemble.database_settings(settings), name="tenure worker") as database:
        await _check(database)
        options = WorkerOptions(
            queues=settings.worker.queues or kinds.queues(),
            slots=settings.worker.slots,
            factory=assemble.CHILD_FACTORY,
            shutdown_seconds=settings.worker.shutdown_grace_seconds,
            chores=(Chore(seconds=EXPIRE_SECONDS, run=lambda: expire_packages(database, objects)),),
        )
        objects = assemble.object_store(settings)
        worker = Worker(database, kinds, options, log_fact)
        loop = asyncio.get_running_loop()
        for stop_signal in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(stop_signal, worker.stop)
        await worker.run()


def _services(settings: Settings, database: Database) -> Services:
    desk = assemble.export_desk(settings, database)
    objects = assemble.object_store(settings)

    async def record_download(record: DownloadRecord) -> None:
        await assemble.record_download(database, record)

    async def check_ready() -> Mapping[str, bool]:
        try:
            async with database.connection(seconds=2.0) as connection:
                await check_schema(connection)
        except DatabaseUnavailableError:
            return {"database": False}
        return {"database": True}

    return Services(
        catalogue=settings.catalogue,
        link_keys=assemble.link_keys(settings),
        public_url=settings.api.base_url(settings.api.port),
        link_seconds=settings.exports.link_seconds,
        now=assemble.utc_now,
        authenticate=assemble.KeyCabinet(database=database).authenticate,
        admit=desk.admit,
        find_export=desk.find,
        list_exports=desk.list_newest,
        cancel_export=desk.cancel,
        operator=Operator(database=database),
        read_object=lambda key, start, length: objects.open(key, start=start, length=length),
        record_download=record_download,
        check_ready=check_ready,
    )


async def _check(database: Database) -> None:
    async with database.connection() as connection:
        await check_schema(connection)
