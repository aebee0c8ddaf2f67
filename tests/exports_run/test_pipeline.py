"""Memory stays flat: whoever is faster waits."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from export_world import WrappedStore

from tenure.core.export import Compression
from tenure.core.ids import JobId, LeaseToken, TenantId
from tenure.core.job import Fence
from tenure.encoders.compression import packer
from tenure.exports.write import QUEUE_BLOCKS, TENANT_SEGMENT_CHARS_MAX, FileWriter, attempt_prefix, tenant_segment
from tenure.objects.directory import DirectoryStore
from tenure.objects.port import ObjectStoreError, check_key

MEASURED = """
import resource, sys
from pathlib import Path
sys.path[:0] = sys.argv[5:]
from export_world import World
from source_server import dataset
from tenure.core.export import Compression
from tenure.objects.directory import DirectoryStore
url, root, rows, width = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
query = ("SELECT i AS id, 'acme'::text AS tenant, (SELECT string_agg(md5((i * k)::text), '') FROM"
         f" generate_series(1, {width}) k) AS text FROM generate_series(1, {rows}) i")
world = World(url=url, objects=DirectoryStore(Path(root)), compression=Compression.GZIP,
              datasets=(dataset(query, columns=("id", "text")),))
assert world.run().rows == rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
MIB_IN_KIB = 1024


class StopError(Exception):
    """What a cancelled run raises."""


def peak_kib(url: str, root: Path, rows: int, width: int) -> int:
    """Peak memory of a process that runs one export of that many rows, `width` times 32 bytes each."""
    here = Path(__file__).parent
    command = [
        sys.executable,
        "-c",
        MEASURED,
        url,
        str(root),
        str(rows),
        str(width),
        str(here),
        str(here.parent / "sources"),
    ]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_times_the_rows_need_no_more_memory(source_url, tmp_path):
    few = peak_kib(source_url, tmp_path / "few", 20_000, 20)
    many = peak_kib(source_url, tmp_path / "many", 200_000, 20)
    assert many - few < 12 * MIB_IN_KIB


def test_rows_of_a_megabyte_need_no_more_memory_the_more_there_are(source_url, tmp_path):
    few = peak_kib(source_url, tmp_path / "few", 20, 32_768)
    many = peak_kib(source_url, tmp_path / "many", 80, 32_768)
    assert many - few < 16 * MIB_IN_KIB


def test_a_store_that_stands_still_stops_the_reading_side(tmp_path):
    class Standing(WrappedStore):
        """Takes a block only once the test is over."""

        over = False

        def create(self, key):
            writer = self.inner.create(key)
            real = writer.write

            def write(block):
                while not self.over:
                    pass
                real(block)

            writer.write = write
            return writer

    store = Standing(tmp_path)
    taken = []
    ticks = []

    def tick():
        ticks.append(1)
        store.over = True
        raise StopError

    with pytest.raises(StopError), FileWriter(store, "a", packer(Compression.NONE), tick) as writer:  # noqa: PT012
        for number in range(100):
            writer.put(b"block")
            taken.append(number)
    assert ticks
    # What waits in the queue, and the one block that is being stored.
    assert QUEUE_BLOCKS <= len(taken) <= QUEUE_BLOCKS + 1
    assert list(store.list("")) == []


def test_what_breaks_the_storing_side_reaches_the_reading_side(tmp_path):
    class Broken(WrappedStore):
        def create(self, key):
            raise ObjectStoreError("no space")

    def write_for_ever():
        with FileWriter(Broken(tmp_path), "a", packer(Compression.NONE), lambda: None) as writer:
            while True:
                writer.put(b"block")

    with pytest.raises(ObjectStoreError, match="no space"):
        write_for_ever()


def test_a_file_left_half_written_leaves_nothing(tmp_path):
    store = DirectoryStore(tmp_path)
    with pytest.raises(StopError), FileWriter(store, "t/a", packer(Compression.NONE), lambda: None) as writer:  # noqa: PT012
        writer.put(b"block")
        raise StopError
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "tenant",
    [
        "acme",
        "ACME",
        "a.b",
        "..",
        ".",
        "a_b",
        "a_2eb",
        "a:b",
        "a/b",
        "../../etc",
        "größe",
        "x" * 100,
        "é" * 100,
        "_h",
        " ",
    ],
)
def test_any_tenant_s_id_is_a_safe_segment_of_a_key(tenant):
    fence = Fence(job_id=JobId(uuid4()), attempt=1, lease_token=LeaseToken(uuid4()))
    segments = check_key(attempt_prefix(TenantId(tenant), fence))
    assert len(segments) == 4
    assert len(segments[1]) <= TENANT_SEGMENT_CHARS_MAX


def test_different_tenants_never_share_a_segment():
    tenants = [
        "a.b",
        "a_2eb",
        "a_b",
        "a:b",
        "a-b",
        "ab",
        "A",
        "a",
        "_h",
        "é" * 100,
        "é" * 99 + "e",
        "_" * 50,
        "x" * 100,
    ]
    assert len({tenant_segment(TenantId(tenant)) for tenant in tenants}) == len(tenants)
