"""What an object store must do. Drivers run the contract suite in `tests/objects/object_store_contract.py`."""

import re
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from tenure.core.errors import OperationError

KEY_CHARS_MAX = 900
"""Below the 1,024 bytes that S3 allows, with room for a bucket prefix."""
BLOCK_BYTES = 1024 * 1024
"""Size of the blocks that readers give; the last one may be smaller."""
Block = bytes | bytearray | memoryview
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


class ObjectStoreError(OperationError):
    """The object store refused or could not be reached."""

    code = "object_store_failed"
    title = "The object store failed"
    phase = "write"
    retryable = True
    what_to_do = "It is tried again by itself; the operator must check the object store's space and access."


class ObjectMissingError(ObjectStoreError):
    """No object under this key."""

    code = "object_missing"
    title = "The object is not there"
    retryable = False


class ObjectExistsError(ObjectStoreError):
    """The key is taken: objects are created, never overwritten."""

    code = "object_exists"
    title = "The object is there already"
    retryable = False


class ObjectWriter(Protocol):
    """One object on its way in. Leaving the `with` block without `commit` removes every trace of it."""

    def write(self, block: Block, /) -> None: ...

    def commit(self) -> None:
        """Make the object visible, whole and durable. Raises ObjectExistsError when the key was taken meanwhile."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class ObjectStore(Protocol):
    """Objects by key. Keys are `/`-joined segments; see `check_key`. Methods block; call them from a thread."""

    def create(self, key: str) -> ObjectWriter:
        """Raises ObjectExistsError when the key is taken."""

    def open(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Blocks of the bytes from `start`, at most `length` of them (None: to the end).

        Raises ObjectMissingError at once, not at the first block. An object deleted meanwhile is still read to its end.
        """

    def stat(self, key: str) -> int:
        """Size in bytes. Raises ObjectMissingError."""

    def list(self, prefix: str) -> Iterator[str]:
        """Keys below the prefix (whole segments; empty means all), in order of their text."""

    def delete_prefix(self, prefix: str) -> int:
        """Delete every object below the prefix (whole segments) and what unfinished writers left there.

        Returns how many objects went. Nothing there is no error.
        """


def check_key(key: str) -> tuple[str, ...]:
    """Segments of a valid key: letters, digits, `.`, `_`, `-`, none empty or led by a dot. Raises ValueError."""
    segments = tuple(key.split("/"))
    if len(key) > KEY_CHARS_MAX or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise ValueError(f"not a valid object key: {key[:100]!r}")
    return segments
