"""From an order to a stored, proven package, and to nothing at all when anything goes wrong."""

import csv
import gzip
import hashlib
import io
import json
import subprocess
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
import rfc8785
from export_world import EXPORT_ID, ORDERS, WrappedStore, download, fence
from source_server import dataset, execute, no_query_left

from tenure.core.dataset import Filter, FilterOperator, Selection
from tenure.core.errors import (
    InvalidRequestError,
    PackageMismatchError,
    RowLimitExceededError,
    SourceQueryError,
    SourceUnavailableError,
)
from tenure.core.export import Compression, ExportSettings
from tenure.exports.verify import verify_package
from tenure.objects.port import ObjectExistsError


class StopError(Exception):
    """What a cancelled run raises."""


def add_wide_orders(url: str, rows: int) -> None:
    """Three kilobytes each: enough of them keep the server busy until somebody takes them."""
    execute(
        url,
        "INSERT INTO orders SELECT i, 'acme', repeat('x', 3000), 1, '2026-01-01Z'"
        f" FROM generate_series(3000, {3000 + rows - 1}) i",
    )


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


@pytest.mark.parametrize("compression", list(Compression))
def test_an_order_becomes_a_package_that_verifies(world, tmp_path, compression):
    world.compression = compression
    package = world.run()
    folder = download(world, package, tmp_path / "package")
    report = verify_package(folder, manifest_sha256=package.manifest_sha256)
    assert report.findings == ()
    assert (report.files, report.rows, report.bytes) == (1, 100, package.bytes)
    assert package.rows == 100


def test_the_package_s_checksums_are_what_sha256sum_says(world, tmp_path):
    folder = download(world, world.run(), tmp_path / "package")
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, check=True, capture_output=True, text=True)
    assert checked.stdout.splitlines() == ["orders.csv: OK", "manifest.json: OK"]


def test_the_file_holds_the_tenant_s_rows_up_to_the_cutoff_and_no_other(world):
    content = world.read(world.run().files[0].key)
    rows = rows_of(content)
    assert rows[0] == ["id", "note", "amount"]
    assert [int(row[0]) for row in rows[1:]] == list(range(1, 101))
    assert b"rival" not in content
    assert b"late" not in content
    assert content.splitlines()[1:4] == [b'1,"",1.10', b'2,"note, 2",2.20', b"3,,3.30"]


def test_settings_shape_the_file(world):
    world.settings = ExportSettings(csv_delimiter=";", csv_header=False)
    package = world.run()
    assert world.read(package.files[0].key).splitlines()[1] == b"2;note, 2;2.20"
    dialect = json.loads(world.read(package.manifest_key))["dialect"]
    assert (dialect["delimiter"], dialect["header"]) == (";", False)


def test_filters_of_the_order_hold(world):
    world.filters = (Filter(column="id", operator=FilterOperator.RANGE, values=(10, 12)),)
    assert [row[0] for row in rows_of(world.read(world.run().files[0].key))] == ["id", "10", "11"]


def test_no_rows_give_a_file_with_nothing_but_its_header(world, tmp_path):
    world.tenant = "nobody"
    world.compression = Compression.GZIP
    package = world.run()
    assert gzip.decompress(world.read(package.files[0].key)) == b"id,note,amount\n"
    assert verify_package(download(world, package, tmp_path / "package")).ok


def test_a_single_column_of_nulls_keeps_every_row(world, tmp_path):
    world.datasets = (dataset("SELECT id, tenant, NULL::text AS note FROM orders", columns=("note",)),)
    package = world.run()
    assert package.rows == 101
    assert verify_package(download(world, package, tmp_path / "package")).ok


def test_the_manifest_is_canonical_and_its_digest_is_the_package_s_identity(world):
    package = world.run()
    raw = world.read(package.manifest_key)
    manifest = json.loads(raw)
    assert rfc8785.dumps(manifest) == raw
    assert hashlib.sha256(raw).hexdigest() == package.manifest_sha256
    assert len(raw) == package.manifest_bytes
    assert manifest["export_id"] == str(EXPORT_ID)
    assert manifest["cutoff"] == "2026-06-01T00:00:00.000000Z"
    assert manifest["consistency"] == "snapshot"
    assert (manifest["rows"], manifest["source_rows"]) == (100, 100)
    assert manifest["files"][0]["column_types"] == ["integer", "text", "numeric(10,2)"]


def test_packages_over_two_sources_do_not_claim_one_view(world):
    world.datasets = (ORDERS, replace(ORDERS, name="again", source="other"))
    assert json.loads(world.read(world.run().manifest_key))["consistency"] == "snapshot_per_source"


@pytest.mark.parametrize("compression", list(Compression))
def test_a_new_attempt_over_unchanged_data_gives_the_same_bytes(world, compression):
    world.compression = compression
    first = world.run()
    world.fence = fence(attempt=2, token=uuid4())
    second = world.run()
    assert first.manifest_key != second.manifest_key
    assert world.read(first.files[0].key) == world.read(second.files[0].key)
    assert first.manifest_sha256 == second.manifest_sha256


def test_every_key_names_tenant_export_attempt_and_token(world):
    world.tenant = "acme:eu"
    execute(world.url, "UPDATE orders SET tenant = 'acme:eu' WHERE tenant = 'acme'")
    package = world.run()
    prefix = f"t/acme_3aeu/{EXPORT_ID}/1-{world.fence.lease_token.hex}"
    keys = [*(file.key for file in package.files), package.manifest_key]
    assert keys == [f"{prefix}/orders.csv", f"{prefix}/SHA256SUMS", f"{prefix}/manifest.json"]
    assert sorted(world.objects.list("")) == sorted(keys)


def test_datasets_of_one_source_are_read_in_one_view(world):
    world.datasets = (ORDERS, replace(ORDERS, name="again"))
    changed = []

    def change_once_reading():
        if not changed and any(report.phase == "read" for report in world.reports):
            changed.append(True)
            execute(world.url, "DELETE FROM orders WHERE id <= 50")

    world.check_cancelled = change_once_reading
    package = world.run()
    assert changed
    assert [file.rows for file in package.files] == [100, 100, 0]


def test_too_many_rows_are_refused_by_name_and_number_before_any_is_read(world):
    world.datasets = (replace(ORDERS, row_limit=99),)
    with pytest.raises(RowLimitExceededError, match=r'"orders" has 100 rows .* limit is 99'):
        world.run()
    assert {report.phase for report in world.reports} == {"plan"}
    assert list(world.objects.list("")) == []
    world.datasets = (replace(ORDERS, row_limit=100),)
    assert world.run().rows == 100


def test_one_dataset_over_its_limit_stops_the_others_before_they_are_read(world):
    world.datasets = (ORDERS, replace(ORDERS, name="again", row_limit=1))
    with pytest.raises(RowLimitExceededError, match='"again"'):
        world.run()
    assert {report.phase for report in world.reports} == {"plan"}


def test_a_query_that_does_not_give_what_it_counted_is_no_package(world):
    execute(world.url, "CREATE SEQUENCE calls")
    # Counting and copying see the same data, but the function answers by how often it was asked.
    execute(
        world.url,
        "CREATE FUNCTION moody() RETURNS SETOF int LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY"
        " SELECT * FROM generate_series(1, CASE WHEN current_query() LIKE 'COPY%' THEN 2 ELSE 3 END); END $$",
    )
    world.datasets = (dataset("SELECT id, 'acme'::text AS tenant FROM moody() AS m (id)"),)
    with pytest.raises(PackageMismatchError, match="gave 2 rows where 3 were counted") as caught:
        world.run()
    assert caught.value.phase == "read"
    assert list(world.objects.list("")) == []


def test_a_byte_that_the_store_changed_is_found_before_anything_is_published(world, tmp_path):
    class Flipping(WrappedStore):
        def open(self, key, **part):
            blocks = list(self.inner.open(key, **part))
            if key.endswith("orders.csv"):
                blocks[0] = blocks[0][:20] + bytes([blocks[0][20] ^ 1]) + blocks[0][21:]
            return iter(blocks)

    world.objects = Flipping(tmp_path / "flipping")
    with pytest.raises(PackageMismatchError, match=r"orders\.csv has SHA-256"):
        world.run()
    assert list(world.objects.list("")) == []


def test_a_file_that_the_store_cut_is_found_before_anything_is_published(world, tmp_path):
    class Cutting(WrappedStore):
        def stat(self, key):
            return self.inner.stat(key) - 1

    world.objects = Cutting(tmp_path / "cutting")
    with pytest.raises(PackageMismatchError, match=r"orders\.csv holds \d+ bytes where"):
        world.run()


def test_the_manifest_is_written_last(world, tmp_path):
    class Watching(WrappedStore):
        def __init__(self, root):
            super().__init__(root)
            self.created = []

        def create(self, key):
            self.created.append(key.rsplit("/", 1)[1])
            return self.inner.create(key)

    world.objects = Watching(tmp_path / "watching")
    world.run()
    assert world.objects.created == ["orders.csv", "SHA256SUMS", "manifest.json"]


def test_a_store_that_fails_ends_the_source_s_query_and_leaves_nothing(world, tmp_path):
    class Full(WrappedStore):
        def create(self, key):
            writer = self.inner.create(key)

            def write(block):
                raise ObjectExistsError("the disk says no")

            writer.write = write
            return writer

    world.objects = Full(tmp_path / "full")
    add_wide_orders(world.url, 6_000)
    with pytest.raises(ObjectExistsError, match="the disk says no"):
        world.run()
    assert list(world.objects.list("")) == []
    assert no_query_left(world.url)


@pytest.mark.parametrize("phase", ["plan", "read", "publish"])
def test_a_cancel_in_any_phase_passes_through_and_leaves_nothing(world, phase):
    def check_cancelled():
        if world.reports and world.reports[-1].phase == phase:
            raise StopError

    world.check_cancelled = check_cancelled
    add_wide_orders(world.url, 6_000)
    with pytest.raises(StopError):
        world.run()
    assert world.reports[-1].phase == phase
    assert list(world.objects.list("")) == []
    assert no_query_left(world.url)


def test_a_cancel_between_the_rows_kills_the_copy_and_leaves_nothing(world):
    add_wide_orders(world.url, 16_000)

    def check_cancelled():
        if any(report.bytes_done or report.rows_done for report in world.reports):
            raise StopError

    # Every wait of the source asks, so that the run is cancelled while the server still has rows to send.
    world.check_cancelled = check_cancelled
    with pytest.raises(StopError):
        world.run()
    assert world.reports[-1].rows_done < 16_100
    assert list(world.objects.list("")) == []
    assert no_query_left(world.url)


def test_a_failed_attempt_takes_nothing_of_another_with_it(world):
    good = world.run()
    world.fence = fence(attempt=2)
    world.datasets = (replace(ORDERS, row_limit=1),)
    with pytest.raises(RowLimitExceededError):
        world.run()
    assert len(list(world.objects.list(""))) == 3
    assert world.read(good.manifest_key)


def test_the_same_attempt_run_again_is_refused_and_its_package_stays(world, tmp_path):
    package = world.run()
    execute(world.url, "DELETE FROM orders WHERE id = 1")
    with pytest.raises(ObjectExistsError, match="run before"):
        world.run()
    assert verify_package(download(world, package, tmp_path / "package")).ok


def test_progress_tells_phases_in_order_and_ends_at_what_was_planned(world):
    package = world.run()
    phases = [report.phase for report in world.reports]
    assert list(dict.fromkeys(phases)) == ["plan", "read", "publish"]
    assert world.reports[0].rows_expected is None
    last = world.reports[-1]
    assert (last.rows_done, last.rows_expected, last.bytes_done) == (100, 100, package.bytes)


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        (Selection(dataset="gone", columns=("id",)), "not in the catalogue"),
        (Selection(dataset="orders", columns=("tenant",)), 'no column "tenant"'),
        (Selection(dataset="orders", columns=()), "no columns chosen"),
        (
            Selection(
                dataset="orders",
                columns=("id",),
                filters=(Filter(column="tenant", operator=FilterOperator.NE, values=("acme",)),),
            ),
            'no filter "ne" on column "tenant"',
        ),
    ],
)
def test_what_the_catalogue_does_not_offer_any_more_is_refused(world, selection, problem):
    order = world.order()
    changed = replace(order, spec=replace(order.spec, selections=(selection,)))
    with pytest.raises(InvalidRequestError, match=problem):
        world.run(changed)


def test_a_dataset_chosen_twice_is_refused(world):
    order = world.order()
    twice = replace(order, spec=replace(order.spec, selections=order.spec.selections * 2))
    with pytest.raises(InvalidRequestError, match="chosen twice"):
        world.run(twice)


def test_a_table_that_is_gone_is_the_catalogue_s_fault(world):
    execute(world.url, "DROP TABLE orders")
    with pytest.raises(SourceQueryError, match="42P01") as caught:
        world.run()
    assert caught.value.phase == "plan"


def test_a_source_that_is_down_means_try_again(world):
    world.url = psycopg.conninfo.make_conninfo(world.url, port=1)
    with pytest.raises(SourceUnavailableError):
        world.run()
