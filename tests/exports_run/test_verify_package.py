"""What `tenure verify` finds in a package that somebody touched, and what it does not complain about."""

import gzip
import json
import shutil
from hashlib import sha256

import pytest
import rfc8785
from export_world import World, add_orders, download
from source_server import execute, fresh_database

from tenure.core.export import Compression
from tenure.exports.verify import verify_package
from tenure.objects.directory import DirectoryStore


@pytest.fixture(scope="module", params=list(Compression))
def made_package(source_server, tmp_path_factory, request):
    home = tmp_path_factory.mktemp("verify")
    with fresh_database(source_server) as url:
        add_orders(url)
        world = World(url=url, objects=DirectoryStore(home / "objects"), compression=request.param)
        made = world.run()
        yield download(world, made, home / "package"), made


@pytest.fixture
def package(made_package, tmp_path):
    """A copy that a test may spoil: its folder, and what the run said of it."""
    folder, made = made_package
    return shutil.copytree(folder, tmp_path / "package"), made


def problems(report) -> str:
    return "\n".join(f"{finding.file} {finding.problem}" for finding in report.findings)


def data_file(folder):
    return next(folder.glob("orders.csv*"))


def rewrite(folder, change) -> None:
    """Change the CSV text inside the file, packed as before."""
    file = data_file(folder)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(change(gzip.decompress(file.read_bytes()))))
    else:
        file.write_bytes(change(file.read_bytes()))


def edit_manifest(folder, change) -> None:
    path = folder / "manifest.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(rfc8785.dumps(document))


def test_an_untouched_package_is_whole(package):
    folder, made = package
    report = verify_package(folder)
    assert report.ok
    assert (report.files, report.rows, report.manifest_sha256) == (1, 100, made.manifest_sha256)


def test_a_flipped_byte_is_found(package):
    folder, _ = package
    file = data_file(folder)
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    assert f"{file.name} has SHA-256" in problems(verify_package(folder))


def test_a_missing_row_is_counted(package):
    folder, _ = package
    rewrite(folder, lambda text: text[: text.rindex(b"100,")])
    found = problems(verify_package(folder))
    assert "holds 99 rows where the manifest says 100" in found
    assert "bytes where the manifest says" in found


def test_a_row_count_that_was_never_true_is_found_though_all_digests_agree(package):
    folder, _ = package

    def claim(document):
        document["files"][0]["rows"] = document["rows"] = document["source_rows"] = 101

    edit_manifest(folder, claim)
    (folder / "SHA256SUMS").unlink()
    assert problems(verify_package(folder)).endswith("holds 100 rows where the manifest says 101")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace(b"id,note", b"id,nota", 1), "another header"),
        (
            lambda text: text.replace(b'2,"note, 2",', b"2,note, 2,", 1),
            "has 4 fields in row 2 where there are 3 columns",
        ),
        (lambda text: text.replace(b'"note, 2"', b'"note, 2"x', 1), "not well-formed CSV after row 1"),
        (lambda text: text.replace(b"note, 2", b"note\xff 2", 1), "not utf-8 text"),
    ],
)
def test_content_that_cannot_be_read_is_explained(package, change, problem):
    folder, _ = package
    rewrite(folder, change)
    assert problem in problems(verify_package(folder))


def test_a_cut_gzip_file_is_explained(world, tmp_path):
    world.compression = Compression.GZIP
    folder = download(world, world.run(), tmp_path / "package")
    data_file(folder).write_bytes(data_file(folder).read_bytes()[:-30])
    assert "not a whole gzip file" in problems(verify_package(folder))


def test_a_missing_and_an_extra_file_are_named(package):
    folder, _ = package
    name = data_file(folder).name
    data_file(folder).rename(folder / "stranger.csv")
    found = problems(verify_package(folder))
    assert f"{name} is missing" in found
    assert "stranger.csv does not belong to this package" in found


def test_an_edited_manifest_disagrees_with_the_checksums(package):
    folder, _ = package
    edit_manifest(folder, lambda document: document.update(requested_by="mallory"))
    assert "SHA256SUMS does not agree with the manifest" in problems(verify_package(folder))


def test_a_manifest_replaced_with_everything_is_found_by_its_identity(package):
    folder, made = package
    edit_manifest(folder, lambda document: document.update(requested_by="mallory"))
    (folder / "SHA256SUMS").unlink()
    assert verify_package(folder).ok
    report = verify_package(folder, manifest_sha256=made.manifest_sha256)
    assert "it is not this package's manifest" in problems(report)


def test_a_manifest_that_is_not_canonical_was_changed(package):
    folder, _ = package
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=2))
    assert "manifest.json is not in canonical form" in problems(verify_package(folder))


@pytest.mark.parametrize("field", ["rows", "bytes", "source_rows"])
def test_totals_that_do_not_add_up_are_found(package, field):
    folder, _ = package
    edit_manifest(folder, lambda document: document.update({field: document[field] + 1}))
    (folder / "SHA256SUMS").unlink()
    assert "manifest.json says" in problems(verify_package(folder))


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", ".hidden", "a/b", ""])
def test_a_manifest_cannot_lead_out_of_its_folder(package, name):
    folder, _ = package
    edit_manifest(folder, lambda document: document["files"][0].update(name=name))
    report = verify_package(folder)
    assert report.files == 0
    assert "which no package can hold" in problems(report)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"rows":NaN}', "not valid JSON"),
        (b"[]", "not a Tenure manifest"),
        (b"{}", "not a Tenure manifest"),
        (b'{"manifest_version":2}', "made by a newer Tenure"),
        (b"\xff", "not valid JSON"),
    ],
)
def test_what_is_no_manifest_is_said_to_be_none(tmp_path, raw, problem):
    (tmp_path / "manifest.json").write_bytes(raw)
    assert problem in problems(verify_package(tmp_path))


def test_a_folder_without_a_manifest_cannot_be_checked(tmp_path):
    assert "manifest.json is missing" in problems(verify_package(tmp_path))


def test_a_single_file_is_checked_against_the_manifest_beside_it(package, tmp_path):
    folder, _ = package
    assert verify_package(data_file(folder)).ok
    elsewhere = tmp_path / "downloads"
    elsewhere.mkdir()
    moved = data_file(folder).rename(elsewhere / data_file(folder).name)
    assert "manifest.json is missing" in problems(verify_package(moved))
    report = verify_package(moved, manifest_path=folder / "manifest.json")
    assert (report.ok, report.files, report.rows) == (True, 1, 100)
    moved.write_bytes(moved.read_bytes() + b"x")
    assert not verify_package(moved, manifest_path=folder / "manifest.json").ok


def test_a_file_of_another_package_is_refused(package):
    folder, _ = package
    other = folder / "other.csv"
    other.write_bytes(b"id\n")
    assert "other.csv is not a file of this package" in problems(verify_package(other))


def test_line_ends_inside_fields_are_no_rows(world, tmp_path):
    execute(world.url, "UPDATE orders SET note = E'a\\nb\\rc\\r\\n\"d\"' WHERE id < 10")
    execute(world.url, "UPDATE orders SET note = repeat('x', 300000) WHERE id = 10")
    report = verify_package(download(world, world.run(), tmp_path / "package"))
    assert (report.findings, report.rows) == ((), 100)


def test_the_identity_is_the_digest_of_the_manifest_s_bytes(package):
    folder, made = package
    assert sha256((folder / "manifest.json").read_bytes()).hexdigest() == made.manifest_sha256
