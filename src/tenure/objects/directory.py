"""Objects as files under one directory, for a single machine or a shared file system with hard links."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from tenure.objects.port import (
    BLOCK_BYTES,
    Block,
    ObjectExistsError,
    ObjectMissingError,
    ObjectStoreError,
    check_key,
)

_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_CREATE_TRIES = 3


class DirectoryStore:
    """An ObjectStore in a directory, which is made when it is missing. Only its owner can read it."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def create(self, key: str) -> "DirectoryWriter":
        path = self._path(key)
        if path.exists():
            raise ObjectExistsError(f"object {key} exists")
        # Led by a dot, so it is no valid key; beside its target, so deleting the prefix takes it along.
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        for tries_left in reversed(range(_CREATE_TRIES)):
            try:
                self._make_directory(path.parent)
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
            except FileNotFoundError:
                # A `delete_prefix` next door pruned the directory just made.
                if tries_left == 0:
                    raise
            except OSError as error:
                raise ObjectStoreError(f"cannot create object {key}: {error.strerror}") from error
            else:
                return DirectoryWriter(key=key, path=path, temporary=temporary, descriptor=descriptor)
        raise AssertionError("unreachable")

    def open(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        if start < 0 or (length is not None and length < 0):
            raise ValueError("start and length must not be negative")
        path = self._path(key)
        if not path.is_file():
            raise ObjectMissingError(f"no object {key}")
        try:
            file = path.open("rb", buffering=0)
        except FileNotFoundError as error:
            raise ObjectMissingError(f"no object {key}") from error
        except OSError as error:
            raise ObjectStoreError(f"cannot open object {key}: {error.strerror}") from error
        return _blocks(file, start, length)

    def stat(self, key: str) -> int:
        path = self._path(key)
        if not path.is_file():
            raise ObjectMissingError(f"no object {key}")
        return path.stat().st_size

    def list(self, prefix: str) -> Iterator[str]:
        top = self._path(prefix) if prefix else self._root
        found = [path for path in top.rglob("*") if not path.name.startswith(".") and path.is_file()]
        return iter(sorted(path.relative_to(self._root).as_posix() for path in found))

    def delete_prefix(self, prefix: str) -> int:
        top = self._path(prefix)
        count = sum(1 for _ in self.list(prefix))
        try:
            shutil.rmtree(top)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ObjectStoreError(f"cannot delete objects below {prefix}: {error.strerror}") from error
        self._prune(top.parent)
        return count

    def _path(self, key: str) -> Path:
        return self._root.joinpath(*check_key(key))

    def _make_directory(self, directory: Path) -> None:
        """Like `mkdir -p`, private and durable: a new name survives a power cut only once its parent is synced."""
        if directory.is_dir():
            return
        if directory != self._root:
            self._make_directory(directory.parent)
            directory.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
        else:
            directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        _sync_directory(directory.parent)

    def _prune(self, directory: Path) -> None:
        while directory != self._root:
            try:
                directory.rmdir()
            except OSError:
                return  # not empty: somebody's objects are there
            directory = directory.parent


class DirectoryWriter:
    """One file on its way in: written aside, synced, then linked under its name."""

    def __init__(self, *, key: str, path: Path, temporary: Path, descriptor: int) -> None:
        self._key = key
        self._path = path
        self._temporary = temporary
        self._file = os.fdopen(descriptor, "wb")

    def write(self, block: Block, /) -> None:
        try:
            self._file.write(block)
        except OSError as error:
            raise ObjectStoreError(f"cannot write object {self._key}: {error.strerror}") from error

    def commit(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            # A link refuses a name that is taken; a rename would overwrite it.
            os.link(self._temporary, self._path)
            self._temporary.unlink()
            _sync_directory(self._path.parent)
        except FileExistsError as error:
            raise ObjectExistsError(f"object {self._key} exists") from error
        except OSError as error:
            raise ObjectStoreError(f"cannot store object {self._key}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        # After a commit the temporary name is gone already and this does nothing.
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            self._temporary.unlink()


def _blocks(file: FileIO, start: int, length: int | None) -> Iterator[bytes]:
    with file:
        file.seek(start)
        left = length
        while left is None or left > 0:
            block = file.read(BLOCK_BYTES if left is None else min(left, BLOCK_BYTES))
            if not block:
                return
            if left is not None:
                left -= len(block)
            yield block


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a directory
            raise
    finally:
        os.close(descriptor)
