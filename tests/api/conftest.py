import pytest
from api_fakes import ACME, CONTENT, FOREIGN_ID, LINK_KEY, MANIFEST, OTHER, FakeRooms, finished_view, view
from starlette.testclient import TestClient

from tenure.api.app import create_app
from tenure.api.services import Services
from tenure.core.dataset import Catalogue, Column, Dataset, FilterOperator
from tenure.core.keys import Scope


@pytest.fixture
def rooms():
    fake = FakeRooms(objects={"k/orders.csv": CONTENT, "k/manifest.json": MANIFEST})
    fake.put(finished_view())
    fake.put(view(id=FOREIGN_ID, tenant_id=OTHER))
    return fake


@pytest.fixture
def services(rooms):
    orders = Dataset(
        name="orders",
        source="secret_source",
        query="SELECT secret_query",
        tenant_column="secret_tenant",
        key=("id",),
        columns=(Column(name="id"), Column(name="total", description="in cents")),
        filters={"id": frozenset({FilterOperator.EQ, FilterOperator.RANGE})},
    )
    return Services(
        catalogue=Catalogue(datasets={"orders": orders}),
        link_keys=(LINK_KEY,),
        public_url="https://exports.example",
        now=lambda: rooms.now,
        authenticate=rooms.authenticate,
        admit=rooms.admit,
        find_export=rooms.find_export,
        list_exports=rooms.list_exports,
        cancel_export=rooms.cancel_export,
        operator=rooms.operator,
        read_object=rooms.read_object,
        record_download=rooms.record_download,
        check_ready=rooms.check_ready,
    )


@pytest.fixture
def app(services):
    return create_app(services)


@pytest.fixture
def anonymous(app):
    """A caller without a key."""
    return TestClient(app, follow_redirects=False)


@pytest.fixture
def client(app, rooms):
    """A caller with a key of ACME that may do everything with exports."""
    key = rooms.make_key(ACME, Scope.EXPORTS_READ, Scope.EXPORTS_EXECUTE)
    return TestClient(app, headers={"authorization": f"Bearer {key}"}, follow_redirects=False)
