"""An export's records, from admission to the notification, on a real database; the run itself is played."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from tenure.core.dataset import Selection
from tenure.core.errors import ConflictError, DeliveryFailedError, EndpointGoneError, ExportActiveError, NotFoundError
from tenure.core.export import (
    EXPORT_KIND,
    EXPORT_QUEUE,
    Channel,
    Delivery,
    ExportOrder,
    ExportSettings,
    ExportSpec,
    ExportStatus,
    Package,
    PackageFile,
)
from tenure.core.ids import TenantId
from tenure.core.job import Fence
from tenure.core.run import Cancelled, Failed, RunError, Succeeded
from tenure.core.settlement import decide
from tenure.engine.context import RunContext
from tenure.engine.handlers import Kind, Kinds
from tenure.exports.admit import ExportDesk
from tenure.exports.deliver import Courier, DeliveryOrder, delivery_kind, webhook_secret
from tenure.exports.download import LinkKey, check_link
from tenure.exports.publish import settle_export
from tenure.store import jobs, queues, tenants
from tenure.transports.port import Receipt

ACME = TenantId("acme")
SPEC = ExportSpec(selections=(Selection(dataset="orders", columns=("id",)),))
HOOKED = ExportSpec(
    selections=SPEC.selections,
    deliveries=(Delivery(channel=Channel.WEBHOOK, url="https://hooks.example/x"),),
    link_seconds=600,
)
PACKAGE = Package(
    manifest_key="t/acme/x/1-y/manifest.json",
    manifest_sha256="ab" * 32,
    manifest_bytes=10,
    rows=3,
    bytes=30,
    files=(
        PackageFile(
            name="orders.csv", key="t/acme/x/1-y/orders.csv", media_type="text/csv", rows=3, bytes=30, sha256="cd" * 32
        ),
        PackageFile(
            name="SHA256SUMS", key="t/acme/x/1-y/SHA256SUMS", media_type="text/plain", rows=0, bytes=9, sha256="ef" * 32
        ),
    ),
)
LINK_KEYS = (LinkKey(kid="one", secret=b"s" * 32),)


@pytest.fixture
async def desk(database):
    kinds = Kinds(
        [
            Kind(
                name=EXPORT_KIND,
                handler=lambda _: None,
                args_type=ExportOrder,
                queue=EXPORT_QUEUE,
                on_end=settle_export,
            ),
            delivery_kind(None),
        ]
    )
    async with database.transaction() as connection:
        await tenants.ensure(connection, ACME)
        await queues.ensure(connection, EXPORT_QUEUE)
        await queues.ensure(connection, "deliveries")
    return ExportDesk(database=database, kinds=kinds, defaults=ExportSettings(package_days=2))


async def test_an_admitted_export_copies_its_settings_and_waits(desk):
    admitted = await desk.admit(ACME, "key:1", SPEC)

    assert (True, ExportStatus.QUEUED) == (admitted.created, admitted.view.status)
    assert SPEC == (await desk.find(ACME, admitted.view.id)).spec


async def test_fifty_equal_requests_at_once_make_one_export(desk):
    admitted = await asyncio.gather(*(desk.admit(ACME, "key:1", SPEC) for _ in range(50)))

    assert 1 == len({one.view.id for one in admitted})
    assert 1 == sum(one.created for one in admitted)


async def test_a_different_request_is_refused_while_one_is_unfinished_and_taken_after_a_cancel(desk):
    first = await desk.admit(ACME, "key:1", SPEC)
    with pytest.raises(ExportActiveError, match=str(first.view.id)):
        await desk.admit(ACME, "key:1", HOOKED)
    cancelled = await desk.cancel(ACME, first.view.id, "key:1")
    second = await desk.admit(ACME, "key:1", HOOKED)

    assert ExportStatus.CANCELLED == cancelled.status
    assert second.created
    assert ExportStatus.CANCELLED == (await desk.cancel(ACME, first.view.id, "key:1")).status


async def test_another_tenants_export_is_not_found(desk):
    admitted = await desk.admit(ACME, "key:1", SPEC)
    for refused in (desk.find, lambda tenant, export: desk.cancel(tenant, export, "key:2")):
        with pytest.raises(NotFoundError, match="no such export"):
            await refused(TenantId("other"), admitted.view.id)


async def test_a_success_publishes_in_the_same_transaction_and_frees_the_slot(desk):
    export = await _run(desk, SPEC, Succeeded(result=msgspec.json.encode(PACKAGE)))

    assert ExportStatus.SUCCEEDED == export.status
    assert PACKAGE == export.package
    assert timedelta(days=2) == export.expires_at - export.finished_at
    assert (await desk.admit(ACME, "key:1", SPEC)).created
    with pytest.raises(ConflictError):
        await desk.cancel(ACME, export.id, "key:1")


async def test_a_stale_success_publishes_nothing(desk):
    admitted = await desk.admit(ACME, "key:1", SPEC)
    claim = await _claim(desk)
    stale = Fence(job_id=claim.fence.job_id, attempt=claim.fence.attempt, lease_token=uuid4())
    settlement = decide(claim, Succeeded(result=msgspec.json.encode(PACKAGE)), desk.kinds[EXPORT_KIND].retry, chance=0)
    object.__setattr__(settlement, "fence", stale)
    ends = await _write(desk, settlement)
    export = await desk.find(ACME, admitted.view.id)

    assert [] == ends
    assert (ExportStatus.RUNNING, None) == (export.status, export.package)


async def test_a_failure_for_good_carries_code_summary_and_phase(desk):
    error = RunError(error_class="X", message="too many", code="row_limit_exceeded", phase="plan", retryable=False)
    export = await _run(desk, SPEC, Failed(error=error))

    assert ExportStatus.FAILED == export.status
    assert ("row_limit_exceeded", "too many", "plan") == (
        export.failure.code,
        export.failure.summary,
        export.failure.phase,
    )


async def test_an_error_that_was_not_written_for_customers_keeps_its_words_to_the_operator(desk):
    error = RunError(error_class="X", message="t/acme/token: no space", code="object_store_failed", retryable=False)
    export = await _run(desk, SPEC, Failed(error=error))

    assert ("object_store_failed", "The export could not be made.") == (export.failure.code, export.failure.summary)


async def test_a_retryable_failure_leaves_the_export_running_with_its_next_try(desk):
    export = await _run(desk, SPEC, Failed(error=RunError(error_class="X", message="slow", code="query_timeout")))

    assert ExportStatus.RUNNING == export.status
    assert export.next_retry_at is not None
    assert export.failure is None


async def test_the_end_enqueues_one_notification_with_a_link_that_lasts_as_long_as_asked(desk):
    export = await _run(desk, HOOKED, Succeeded(result=msgspec.json.encode(PACKAGE)))
    claim = await _claim(desk, "deliveries", "tenure.delivery")
    transport = Sent()
    now = datetime.now(UTC)
    await _courier(transport, now).deliver(_context(claim))
    body = json.loads(transport.message.body)
    path, _, query = body["data"]["download_url"].removeprefix("https://tenure.example").partition("?")
    fields = dict(field.split("=", 1) for field in query.split("&"))
    grant = check_link(LINK_KEYS, export_id=path.split("/")[3], file=path.split("/")[4], query=fields, now=now)

    assert [(Channel.WEBHOOK, "queued")] == [(one.channel, str(one.state)) for one in export.deliveries]
    assert ("export.succeeded", str(export.id), 3) == (body["type"], body["data"]["job_id"], body["data"]["rows"])
    assert ("orders.csv", ACME) == (grant.file, grant.tenant_id)
    assert 600 == pytest.approx(int(fields["expires"]) - now.timestamp(), abs=1)
    assert (str(claim.fence.job_id), (webhook_secret(b"s" * 32, ACME),)) == (transport.message.id, transport.secrets)


async def test_a_cancelled_export_is_told_too_and_without_a_link(desk):
    await _run(desk, HOOKED, Cancelled())
    claim = await _claim(desk, "deliveries", "tenure.delivery")
    transport = Sent()
    await _courier(transport, datetime.now(UTC)).deliver(_context(claim))

    assert {"job_id", "status"} == set(json.loads(transport.message.body)["data"])


async def test_a_receiver_that_is_gone_ends_the_delivery_for_good(desk):
    await _run(desk, HOOKED, Cancelled())
    claim = await _claim(desk, "deliveries", "tenure.delivery")
    with pytest.raises(EndpointGoneError):
        await _courier(Sent(DeliveryFailedError("gone", status=410)), datetime.now(UTC)).deliver(_context(claim))


class Sent:
    """A transport that keeps what it was given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def send(self, message, destination):
        if self.error is not None:
            raise self.error
        self.message, self.secrets = message, destination.secrets
        return Receipt(status=200, latency_seconds=0.1, snippet=None)


def _courier(transport: Sent, now: datetime) -> Courier:
    return Courier(transport=transport, link_keys=LINK_KEYS, public_url="https://tenure.example", now=lambda: now)


def _context(claim) -> RunContext:
    return RunContext(
        fence=claim.fence,
        tenant_id=claim.tenant_id,
        args=msgspec.json.decode(claim.args, type=DeliveryOrder),
        resume_from=None,
        report=lambda _: None,
        checkpoint=lambda _: None,
        is_cancelled=lambda: False,
    )


async def _claim(desk: ExportDesk, queue: str = EXPORT_QUEUE, kind: str = EXPORT_KIND):
    request = jobs.ClaimRequest(queue=queue, worker_id=uuid4(), count=1, kinds=(kind,))
    async with desk.database.connection() as connection:
        (claim,) = await jobs.claim(connection, request)
    return claim


async def _run(desk: ExportDesk, spec: ExportSpec, end):
    admitted = await desk.admit(ACME, "key:1", spec)
    claim = await _claim(desk)
    await _write(desk, decide(claim, end, desk.kinds[EXPORT_KIND].retry, chance=0))
    return await desk.find(ACME, admitted.view.id)


async def _write(desk: ExportDesk, settlement):
    async with desk.database.transaction() as connection:
        ends = await jobs.settle(connection, [settlement], host="here")
        for end in ends:
            await desk.kinds.tell(connection, end)
    return ends
