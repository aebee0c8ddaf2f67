import errno
import os
from pathlib import Path

import pytest
from object_store_contract import ObjectStoreContract, put

from tenure.objects.directory import DirectoryStore
from tenure.objects.port import ObjectStoreError


@pytest.fixture
def root(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
def store(root):
    return DirectoryStore(root)


def files_below(root) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


class TestDirectoryStore(ObjectStoreContract):
    """The directory driver passes the contract of object stores."""


def test_only_the_owner_can_read_what_is_stored(store, root):
    old = os.umask(0)
    try:
        put(store, "t/acme/file", b"secret")
    finally:
        os.umask(old)
    assert {path.stat().st_mode & 0o777 for path in [root, *root.rglob("*")] if path.is_dir()} == {0o700}
    assert (root / "t/acme/file").stat().st_mode & 0o777 == 0o600


def test_an_aborted_writer_leaves_no_temporary_file(store, root):
    with store.create("a/b") as writer:
        writer.write(b"half")
        assert len(files_below(root)) == 1
    assert files_below(root) == []


def test_file_and_name_are_synced_before_the_commit_returns(store, root, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(descriptor):
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    put(store, "t/file", b"x")
    assert synced[-2].endswith(".tmp")
    assert synced[-1] == str(root / "t")
    assert {str(root), str(root.parent)} <= set(synced)


def test_a_full_disk_is_reported_as_a_failing_store_and_leaves_nothing(store, root, monkeypatch):
    def fsync(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = store.create("a/b")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ObjectStoreError, match="No space left") as caught, writer:
        writer.commit()
    assert caught.value.retryable
    assert files_below(root) == []


def test_deleting_a_prefix_removes_the_folders_that_became_empty(store, root):
    put(store, "t/acme/1/file", b"x")
    put(store, "t/other", b"x")
    store.delete_prefix("t/acme/1")
    assert sorted(path.name for path in root.iterdir()) == ["t"]
    assert sorted(path.name for path in (root / "t").iterdir()) == ["other"]
