"""What the rooms below the API would do, as data a test can set."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from tenure.core.dataset import Selection
from tenure.core.errors import ConflictError, NotAuthenticatedError, NotFoundError
from tenure.core.export import ExportSpec, ExportStatus, ExportView, Package, PackageFile
from tenure.core.ids import JobId, TenantId
from tenure.core.keys import KEY_RANDOM_BYTES, Principal, key_matches, make_key
from tenure.exports.download import LinkKey

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
ACME, OTHER = TenantId("acme"), TenantId("other")
CONTENT = bytes(range(256)) * 40
MANIFEST = b'{"manifest_version":1}'
EXPORT_ID = JobId(UUID("018f0000-0000-7000-8000-000000000001"))
FOREIGN_ID = JobId(UUID("018f0000-0000-7000-8000-000000000002"))
UNKNOWN_ID = JobId(UUID("018f0000-0000-7000-8000-00000000ffff"))
LINK_KEY = LinkKey(kid="k1", secret=bytes(range(32)))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def package_file(name="orders.csv", content=CONTENT):
    return PackageFile(
        name=name, key=f"k/{name}", media_type="text/csv", rows=3, bytes=len(content), sha256=sha256(content)
    )


def package(*files):
    return Package(
        manifest_key="k/manifest.json",
        manifest_sha256=sha256(MANIFEST),
        manifest_bytes=len(MANIFEST),
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        files=files,
    )


def view(**changes):
    queued = ExportView(
        id=EXPORT_ID,
        tenant_id=ACME,
        requested_by="someone",
        spec=ExportSpec(selections=(Selection(dataset="orders", columns=("id",)),)),
        status=ExportStatus.QUEUED,
        attempt=0,
        cutoff=NOW,
        created_at=NOW,
        finished_at=None,
        expires_at=None,
        next_retry_at=None,
        progress=None,
        failure=None,
        package=None,
    )
    return replace(queued, **changes)


def finished_view(*files, **changes):
    whole = {
        "status": ExportStatus.SUCCEEDED,
        "attempt": 1,
        "finished_at": NOW,
        "expires_at": NOW + timedelta(days=7),
        "package": package(*(files or (package_file(),))),
    }
    return view(**(whole | changes))


@dataclass
class Admitted:
    view: ExportView
    created: bool = True


@dataclass
class FakeDesk:
    """What operators may ask and change; each test puts the answers in."""

    queues: dict = field(default_factory=dict)
    lanes: dict = field(default_factory=dict)
    whys: dict = field(default_factory=dict)
    report: object = None
    asked: list = field(default_factory=list)

    async def list_queues(self):
        return tuple(self.queues.values())

    async def tune_queue(self, actor, queue, changes):
        if queue not in self.queues:
            raise NotFoundError("queue")
        self.asked.append((actor, queue, changes))
        return self.queues[queue].settings

    async def list_lanes(self, queue, count, after):
        if queue not in self.queues:
            raise NotFoundError("queue")
        return tuple(lane for tenant, lane in sorted(self.lanes.items()) if after is None or tenant > after)[:count]

    async def tune_lane(self, actor, queue, tenant_id, changes):
        if queue not in self.queues:
            raise NotFoundError("queue")
        self.asked.append((actor, queue, tenant_id, changes))
        return self.lanes[tenant_id].settings

    async def why_job(self, tenant_id, job_id):
        found = self.whys.get(job_id)
        if found is None or tenant_id not in (None, found.job.tenant_id):
            raise NotFoundError("job")
        return found

    async def fairness(self, queue, seconds):
        self.asked.append((queue, seconds))
        return self.report


@dataclass
class FakeRooms:
    """Fakes of every service, over dictionaries."""

    now: datetime = NOW
    views: dict = field(default_factory=dict)
    objects: dict = field(default_factory=dict)
    keys: dict = field(default_factory=dict)
    admitted: list = field(default_factory=list)
    downloads: list = field(default_factory=list)
    checks: dict = field(default_factory=lambda: {"database": True})
    operator: FakeDesk = field(default_factory=FakeDesk)
    admission_created: bool = True
    fault: Exception | None = None
    block_bytes: int = 1000
    reader: object = None
    """Reads objects instead of `objects`."""

    def put(self, item):
        self.views[item.tenant_id, item.id] = item

    def make_key(self, tenant_id, *scopes, seed=1):
        key = make_key(bytes([seed]) * KEY_RANDOM_BYTES)
        self.keys[key.key_id] = (
            key.digest,
            Principal(key_id=key.key_id, tenant_id=tenant_id, scopes=frozenset(scopes)),
        )
        return key.text

    async def authenticate(self, presented):
        digest, principal = self.keys.get(presented.key_id, (bytes(32), None))
        if not key_matches(presented, digest):
            raise NotAuthenticatedError
        return principal

    async def admit(self, tenant_id, requested_by, spec):
        if self.fault:
            raise self.fault
        self.admitted.append((tenant_id, requested_by, spec))
        return Admitted(view(tenant_id=tenant_id, requested_by=requested_by, spec=spec), self.admission_created)

    async def find_export(self, tenant_id, export_id):
        if self.fault:
            raise self.fault
        if (tenant_id, export_id) not in self.views:
            raise NotFoundError("export")
        return self.views[tenant_id, export_id]

    async def list_exports(self, tenant_id, limit, before):
        mine = sorted((i for (t, _), i in self.views.items() if t == tenant_id), key=lambda i: i.id, reverse=True)
        return tuple(item for item in mine if before is None or item.id < before)[:limit]

    async def cancel_export(self, tenant_id, export_id, cancelled_by):
        found = await self.find_export(tenant_id, export_id)
        if found.status is ExportStatus.SUCCEEDED:
            raise ConflictError("the export is published already")
        status = ExportStatus.CANCELLED if found.status is ExportStatus.QUEUED else found.status
        self.put(replace(found, status=status, cancel_requested=True))
        return self.views[tenant_id, export_id]

    def read_object(self, key, start, length):
        if self.reader:
            return self.reader(key, start, length)
        content = self.objects[key][start : start + length]
        return (content[at : at + self.block_bytes] for at in range(0, len(content), self.block_bytes))

    async def record_download(self, record):
        self.downloads.append(record)

    async def check_ready(self):
        return self.checks
