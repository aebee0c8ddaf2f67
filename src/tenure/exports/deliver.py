"""Tell the customer that an export ended. Each notification is a job of its own: the export is never run again for it.

The facts of a notice are fixed when the export ends; each attempt adds a fresh timestamp and a fresh download link.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from tenure.core import limits
from tenure.core.errors import DeliveryFailedError, EndpointGoneError
from tenure.core.export import ExportFailure, ExportStatus
from tenure.core.ids import JobId, TenantId
from tenure.core.job import JobEnd
from tenure.core.lifecycle import JobState
from tenure.core.manifest import MANIFEST_NAME
from tenure.core.retry import RetryPolicy
from tenure.engine.context import RunContext
from tenure.engine.handlers import Isolation, Kind
from tenure.exports.download import LinkGrant, LinkKeys, sign_link
from tenure.store import deliveries
from tenure.store.database import Connection
from tenure.transports.port import SECRET_PREFIX, Message, Transport, WebhookEndpoint

DELIVERY_KIND = "tenure.delivery"
DELIVERY_QUEUE = "deliveries"
DELIVERY_LEASE_SECONDS = 60.0
DELIVERY_RETRY = RetryPolicy(max_attempts=10, base_seconds=5.0, factor=4.0, cap_seconds=36_000.0, jitter=0.2)
"""5 s, 20 s, 80 s, ... 10 h: about 27 hours in all, after the Standard Webhooks recommendation."""
HTTP_GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What is to be told of an export that ended."""

    export_id: JobId
    tenant_id: TenantId
    status: ExportStatus
    finished_at: datetime
    expires_at: datetime | None = None
    link_seconds: int = limits.LINK_SECONDS_DEFAULT
    """How long each link works, counted from the attempt that sends it."""
    file: str | None = None
    """The package's file, when it has just one; else the link leads to the manifest."""
    rows: int | None = None
    bytes: int | None = None
    manifest_sha256: str | None = None
    failure: ExportFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOrder:
    """Arguments of a delivery's job."""

    url: str
    notice: Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Courier:
    """Sends notices. `link_keys` sign download links; each tenant's webhook secret is derived from them."""

    transport: Transport[WebhookEndpoint]
    link_keys: LinkKeys = field(repr=False)
    public_url: str
    now: Callable[[], datetime]

    async def deliver(self, context: RunContext) -> dict[str, object]:
        """Handler of a delivery's job: one attempt. The message id is the same for all of them."""
        order: DeliveryOrder = context.args
        now = self.now()
        message = Message(id=context.idempotency_key, timestamp=now, body=self._body(order.notice, now))
        secrets = tuple(webhook_secret(key.secret, order.notice.tenant_id) for key in self.link_keys)
        try:
            receipt = await self.transport.send(message, WebhookEndpoint(url=order.url, secrets=secrets))
        except DeliveryFailedError as error:
            if error.status == HTTP_GONE:
                raise EndpointGoneError("the receiver answered 410 Gone") from error
            raise
        return {"status": receipt.status, "latency_seconds": receipt.latency_seconds}

    def _body(self, notice: Notice, now: datetime) -> bytes:
        """The thin payload of Standard Webhooks: facts and a link, never the data."""
        data: dict[str, object] = {"job_id": notice.export_id, "status": notice.status}
        if notice.status is ExportStatus.SUCCEEDED:
            data |= {
                "download_url": self._link(notice, now),
                "expires_at": notice.expires_at,
                "rows": notice.rows,
                "bytes": notice.bytes,
                "manifest_sha256": notice.manifest_sha256,
            }
        if notice.failure is not None:
            data["error"] = {
                "code": notice.failure.code,
                "summary": notice.failure.summary,
                "phase": notice.failure.phase,
            }
        return msgspec.json.encode({"type": f"export.{notice.status}", "timestamp": notice.finished_at, "data": data})

    def _link(self, notice: Notice, now: datetime) -> str:
        expires_at = now + timedelta(seconds=notice.link_seconds)
        if notice.expires_at is not None:
            expires_at = min(expires_at, notice.expires_at)
        grant = LinkGrant(tenant_id=notice.tenant_id, export_id=notice.export_id, file=notice.file or MANIFEST_NAME)
        return self.public_url + sign_link(self.link_keys, grant, expires_at=expires_at)


def webhook_secret(link_secret: bytes, tenant_id: TenantId) -> str:
    """The `whsec_` secret a tenant verifies with. Derived, so nothing is stored and none tells another's."""
    digest = hmac.new(link_secret, b"tenure-webhook-v1:" + tenant_id.encode(), hashlib.sha256).digest()
    return SECRET_PREFIX + base64.b64encode(digest).decode()


def delivery_kind(courier: Courier | None) -> Kind:
    """The kind of job that sends notices. Processes that send none, such as the API, need no courier."""

    async def refuse(_: RunContext) -> None:
        raise DeliveryFailedError("this process has no courier")

    return Kind(
        name=DELIVERY_KIND,
        handler=courier.deliver if courier is not None else refuse,
        args_type=DeliveryOrder,
        queue=DELIVERY_QUEUE,
        isolation=Isolation.TASK,
        retry=DELIVERY_RETRY,
        lease_seconds=DELIVERY_LEASE_SECONDS,
        time_limit_seconds=DELIVERY_LEASE_SECONDS,
        on_end=record_delivery,
    )


async def record_delivery(connection: Connection, end: JobEnd) -> None:
    """Keep how the newest attempt went beside the export, in the transaction that settles it."""
    delivered = end.state is JobState.SUCCEEDED
    code = "delivered" if delivered else end.error_code or str(end.state)
    await deliveries.record(connection, end.tenant_id, end.job_id, code=code, delivered=delivered)
