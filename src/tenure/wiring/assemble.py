"""Builds what each process needs from the settings; the only place that picks drivers."""

import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tenure.core.errors import FieldProblem, InvalidSettingsError, NotAuthenticatedError
from tenure.core.export import EXPORT_KIND, EXPORT_QUEUE, ExportOrder, ExportProgress, ExportSettings, Package
from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobView
from tenure.core.keys import KEY_RANDOM_BYTES, NO_DIGEST, PresentedKey, Principal, Scope, key_matches, make_key
from tenure.core.retry import RetryPolicy
from tenure.core.run import RunRecord
from tenure.engine.context import RunContext
from tenure.engine.handlers import Handler, Isolation, Kind, Kinds
from tenure.exports.admit import ExportDesk
from tenure.exports.deliver import Courier, delivery_kind
from tenure.exports.download import LINK_SECRET_BYTES_MIN, DownloadRecord, LinkKey, LinkKeys
from tenure.exports.publish import settle_export
from tenure.objects.directory import DirectoryStore
from tenure.objects.port import ObjectStore
from tenure.store import audit, downloads, jobs, keys, runs, tenants, workers
from tenure.store.database import Database, DatabaseSettings
from tenure.store.progress import Progress
from tenure.transports.egress import EgressClient
from tenure.transports.policy import EgressPolicy
from tenure.transports.webhook import WebhookTransport
from tenure.wiring.embedded import running_address
from tenure.wiring.settings import Settings

EXPORT_RETRY = RetryPolicy(max_attempts=3, base_seconds=30.0, factor=1.0, cap_seconds=30.0, jitter=0.0)
"""A source query that runs out of time is tried again after 30 s, three times in all (SPEC 2.3)."""
EXPORT_TIME_LIMIT_SECONDS = 24 * 3_600.0
EMBEDDED_DIR = "postgres"
"""Where in the data directory the embedded PostgreSQL lives."""
LINK_KEYS_FILE = "link-keys.json"
CHILD_FACTORY = "tenure.wiring.assemble:child_kinds"


def database_settings(settings: Settings) -> DatabaseSettings:
    """How to reach Tenure's database: the one named, else the embedded one that `tenure up` runs on the data directory.

    Raises `InvalidSettingsError` where there is neither.
    """
    url = settings.database.url.text if settings.database.url is not None else None
    if url is None and (embedded := running_address(settings.data_dir / EMBEDDED_DIR)) is not None:
        url = embedded.database_url
    if url is None:
        detail = f"none is set, and nothing runs on {settings.data_dir}: start `tenure up` there, in another terminal"
        raise InvalidSettingsError(FieldProblem(pointer="database.url", detail=detail))
    direct = settings.database.direct_url
    return DatabaseSettings(
        url=url,
        direct_url=direct.text if direct else None,
        prepared_statements=settings.database.prepared_statements,
    )


def object_store(settings: Settings) -> ObjectStore:
    return DirectoryStore(settings.objects.path)


def link_keys(settings: Settings) -> LinkKeys:
    """The key ring of signed links: the settings', or one made in the data directory at the first start."""
    if settings.links.keys is not None:
        return settings.links.keys
    path = settings.data_dir / LINK_KEYS_FILE
    made = {"first": secrets.token_hex(LINK_SECRET_BYTES_MIN)}
    stored = msgspec.json.decode(_read_or_create(path, msgspec.json.encode(made)), type=dict[str, str])
    return tuple(LinkKey(kid=kid, secret=bytes.fromhex(secret)) for kid, secret in stored.items())


def kinds(settings: Settings, *, courier: Courier | None = None) -> Kinds:
    """Every kind of job this installation has."""
    return Kinds(
        [
            Kind(
                name=EXPORT_KIND,
                handler=_export_handler(settings),
                args_type=ExportOrder,
                queue=EXPORT_QUEUE,
                isolation=Isolation.PROCESS,
                retry=EXPORT_RETRY,
                lease_seconds=settings.worker.lease_seconds,
                time_limit_seconds=EXPORT_TIME_LIMIT_SECONDS,
                on_end=settle_export,
            ),
            delivery_kind(courier),
        ]
    )


def child_kinds() -> Kinds:
    """The same kinds inside a worker's child process, which reads the settings for itself."""
    return kinds(Settings.load(None, os.environ, {}))


def courier(settings: Settings, public_url: str) -> Courier:
    policy = EgressPolicy(
        allowed_networks=settings.egress.allowed_networks,
        allow_http=settings.egress.allow_http,
        allowed_ports=settings.egress.allowed_ports,
    )
    return Courier(
        transport=WebhookTransport(EgressClient(policy)),
        link_keys=link_keys(settings),
        public_url=public_url,
        now=utc_now,
    )


def export_desk(settings: Settings, database: Database) -> ExportDesk:
    return ExportDesk(
        database=database,
        kinds=kinds(settings),
        defaults=ExportSettings(package_days=settings.exports.package_days),
    )


def utc_now() -> datetime:
    """Wall clock, for links and message timestamps only; nothing stored or judged comes from it."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """A key just made: shown once."""

    key_id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCabinet:
    """Makes and checks API keys."""

    database: Database

    async def issue(self, tenant_id: TenantId | None, *, name: str) -> IssuedKey:
        """A new key: a tenant's may read and execute exports, one without a tenant is an operator's."""
        key = make_key(secrets.token_bytes(KEY_RANDOM_BYTES))
        scopes = {Scope.EXPORTS_READ, Scope.EXPORTS_EXECUTE} if tenant_id is not None else {Scope.OPERATOR}
        grant = keys.KeyGrant(name=name, tenant_id=tenant_id, scopes=frozenset(scopes))
        async with self.database.transaction() as connection:
            if tenant_id is not None:
                await tenants.ensure(connection, tenant_id)
            await keys.create(connection, key, grant)
            await audit.append(connection, "cli", "key.create", key.key_id, tenant_id=tenant_id)
        return IssuedKey(key_id=key.key_id, text=key.text)

    async def authenticate(self, presented: PresentedKey) -> Principal:
        """Raises `NotAuthenticatedError`: unknown, wrong, expired or revoked, all alike."""
        async with self.database.connection() as connection:
            stored = await keys.find(connection, presented.key_id)
        matches = key_matches(presented, stored.digest if stored is not None else NO_DIGEST)
        if stored is None or not matches:
            raise NotAuthenticatedError("this key is not valid")
        return stored.principal


async def record_download(database: Database, record: DownloadRecord) -> None:
    download = downloads.Download(
        tenant_id=record.tenant_id,
        export_id=record.export_id,
        file=record.file,
        requested_by=record.by,
        bytes_sent=record.bytes_sent,
        complete=record.complete,
    )
    async with database.transaction() as connection:
        await downloads.record(connection, download)


def _export_handler(settings: Settings) -> Handler:
    def run(context: RunContext) -> Package:
        # Imported where it runs: only a child process carries out exports, and nobody else pays for the drivers.
        from tenure.exports.progress import Signals  # noqa: PLC0415
        from tenure.exports.run import run_export  # noqa: PLC0415
        from tenure.sources.request import PostgresSettings  # noqa: PLC0415

        def report(progress: ExportProgress) -> None:
            context.report(
                Progress(
                    done=progress.rows_done,
                    total=progress.rows_expected,
                    bytes_done=progress.bytes_done,
                    phase=progress.phase,
                )
            )

        return run_export(
            context.args,
            fence=context.fence,
            catalogue=settings.catalogue,
            sources={name: PostgresSettings(url=source.url.text) for name, source in settings.sources.items()},
            objects=object_store(settings),
            signals=Signals(progress=report, check_cancelled=context.check_cancelled),
        )

    return run


def _read_or_create(path: Path, content: bytes) -> bytes:
    """The file's bytes; it is made private with `content` when it is missing. Two processes at once: one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)
    return path.read_bytes()


async def look_up_job(settings: Settings, tenant_id: TenantId, job_id: JobId) -> tuple[JobView, list[RunRecord]] | None:
    """One job of a tenant with its runs, for people."""
    async with Database(database_settings(settings)) as database, database.connection() as connection:
        job = await jobs.find(connection, tenant_id, job_id)
        return None if job is None else (job, await runs.of_job(connection, tenant_id, job_id))


async def look_up_owner(settings: Settings, tenant_id: TenantId, job_id: JobId) -> workers.JobOwner | None:
    """The worker process that runs a tenant's job now."""
    async with Database(database_settings(settings)) as database, database.connection() as connection:
        return await workers.owner(connection, tenant_id, job_id)
