"""One call that runs an export, with everything a test does not care about filled in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from source_server import CUTOFF, dataset, execute

from tenure.core.dataset import Catalogue, Dataset, Filter, Selection
from tenure.core.export import Compression, ExportOrder, ExportProgress, ExportSettings, ExportSpec, Package
from tenure.core.ids import JobId, LeaseToken, TenantId
from tenure.core.job import Fence
from tenure.exports.progress import Signals
from tenure.exports.run import run_export
from tenure.objects.directory import DirectoryStore
from tenure.objects.port import ObjectStore
from tenure.sources.request import PostgresSettings

EXPORT_ID = UUID("01890000-0000-7000-8000-000000000001")
TOKEN = UUID("0000000000000000000000000000cafe")
ORDERS = dataset(
    "SELECT * FROM orders",
    columns=("id", "note", "amount"),
    cutoff_column="created_at",
)


def fence(attempt: int = 1, token: UUID = TOKEN) -> Fence:
    return Fence(job_id=JobId(EXPORT_ID), attempt=attempt, lease_token=LeaseToken(token))


@dataclass(kw_only=True)
class World:
    """A source, a store and the settings of one tenant."""

    url: str
    objects: ObjectStore
    datasets: Iterable[Dataset] = (ORDERS,)
    tenant: str = "acme"
    compression: Compression = Compression.NONE
    settings: ExportSettings = field(default_factory=ExportSettings)
    filters: tuple[Filter, ...] = ()
    fence: Fence = field(default_factory=fence)
    check_cancelled: Callable[[], None] = lambda: None
    reports: list[ExportProgress] = field(default_factory=list)

    def order(self) -> ExportOrder:
        selections = tuple(
            Selection(dataset=item.name, columns=item.column_names(), filters=self.filters) for item in self.datasets
        )
        return ExportOrder(
            tenant_id=TenantId(self.tenant),
            requested_by="ada",
            spec=ExportSpec(selections=selections, compression=self.compression),
            settings=self.settings,
            cutoff=CUTOFF,
        )

    def run(self, order: ExportOrder | None = None) -> Package:
        return run_export(
            order or self.order(),
            fence=self.fence,
            catalogue=Catalogue(datasets={item.name: item for item in self.datasets}),
            sources={"shop": PostgresSettings(url=self.url), "other": PostgresSettings(url=self.url)},
            objects=self.objects,
            signals=Signals(progress=self.reports.append, check_cancelled=self.check_cancelled),
        )

    def read(self, key: str) -> bytes:
        return b"".join(self.objects.open(key))


class WrappedStore:
    """A store of which a test may bend single methods."""

    def __init__(self, root: Path) -> None:
        self.inner = DirectoryStore(root)

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


def download(world: World, package: Package, folder: Path) -> Path:
    """The package as a customer has it on disk."""
    folder.mkdir()
    for file in package.files:
        (folder / file.name).write_bytes(world.read(file.key))
    (folder / "manifest.json").write_bytes(world.read(package.manifest_key))
    return folder


def add_orders(url: str) -> None:
    """A hundred orders of acme, five of another tenant, one after the cutoff."""
    execute(
        url,
        "CREATE TABLE orders"
        " (id int PRIMARY KEY, tenant text, note text, amount numeric(10,2), created_at timestamptz)",
        "INSERT INTO orders SELECT i, 'acme', CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'note, ' || i END,"
        " i * 1.10, '2026-01-01Z' FROM generate_series(1, 100) i",
        "INSERT INTO orders SELECT 1000 + i, 'rival', 'secret of the rival', i, '2026-01-01Z'"
        " FROM generate_series(1, 5) i",
        "INSERT INTO orders VALUES (2000, 'acme', 'late', 1, '2026-12-01Z')",
    )
