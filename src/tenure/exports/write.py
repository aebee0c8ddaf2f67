"""Packs, hashes and stores a file while its rows are still being read, and proves afterwards what the store holds.

Two threads joined by a short queue: the one that reads keeps the source's server busy, the other one's work (compress,
SHA-256, write) runs outside the interpreter's lock. When either side ends early, so does the other.
"""

import hashlib
import queue
import string
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tenure.core.errors import PackageMismatchError
from tenure.core.ids import TenantId
from tenure.core.job import Fence
from tenure.encoders.compression import Block, Packer
from tenure.objects.port import ObjectStore, ObjectWriter

QUEUE_BLOCKS = 4
"""Blocks that may wait: enough to smooth a slow sync, few enough to hold memory flat."""
WAIT_SECONDS = 0.1
TENANT_SEGMENT_CHARS_MAX = 150
_PLAIN_BYTES = frozenset(f"{string.ascii_letters}{string.digits}-".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes under a key: their number and lower-case hex SHA-256."""

    key: str
    bytes: int
    sha256: str


def attempt_prefix(tenant_id: TenantId, fence: Fence) -> str:
    """Where one attempt's objects live. Attempt and token are part of it: a stale worker can overwrite nothing."""
    return f"t/{tenant_segment(tenant_id)}/{fence.job_id}/{fence.attempt}-{fence.lease_token.hex}"


def tenant_segment(tenant_id: TenantId) -> str:
    """A tenant's id as one segment of a key; different ids never give the same one.

    Letters, digits and `-` stand for themselves, any other byte is `_` and two hex digits. Where that grows too long it
    is `_h` and the id's SHA-256: `h` is no hex digit, so the two forms never meet.
    """
    raw = tenant_id.encode()
    plain = "".join(chr(byte) if byte in _PLAIN_BYTES else f"_{byte:02x}" for byte in raw)
    if not plain:
        raise ValueError("a tenant's id is not empty")
    return plain if len(plain) <= TENANT_SEGMENT_CHARS_MAX else f"_h{hashlib.sha256(raw).hexdigest()}"


class FileWriter:
    """Takes blocks, stores one file. Leaving the `with` block without `finish` leaves nothing in the store."""

    def __init__(self, objects: ObjectStore, key: str, packer: Packer, tick: Callable[[], None]) -> None:
        self._objects = objects
        self._key = key
        self._packer = packer
        self._tick = tick
        self._blocks: queue.Queue[Block | None] = queue.Queue(maxsize=QUEUE_BLOCKS)
        self._digest = hashlib.sha256()
        self._failure: BaseException | None = None
        self._abandoned = False
        self._thread = threading.Thread(target=self._work, name="tenure-write", daemon=True)
        self.bytes_stored = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._abandoned = True
        while self._thread.is_alive():
            with suppress(queue.Full):
                self._blocks.put_nowait(None)
            self._thread.join(WAIT_SECONDS)

    def put(self, block: Block) -> None:
        """Hand over a block, waiting while the queue is full. Raises what the storing side raised."""
        self._hand_over(block)

    def finish(self) -> Stored:
        """Wait until the object is complete, durable and visible."""
        self._hand_over(None)
        while self._thread.is_alive():
            self._thread.join(WAIT_SECONDS)
            self._tick()
        if self._failure is not None:
            raise self._failure
        return Stored(key=self._key, bytes=self.bytes_stored, sha256=self._digest.hexdigest())

    def _hand_over(self, block: Block | None) -> None:
        while self._failure is None:
            try:
                self._blocks.put(block, timeout=WAIT_SECONDS)
            except queue.Full:
                self._tick()
            else:
                return
        raise self._failure

    def _work(self) -> None:
        try:
            with self._objects.create(self._key) as target:
                while (block := self._blocks.get()) is not None and not self._abandoned:
                    self._store(target, self._packer.pack(block))
                if not self._abandoned:
                    self._store(target, self._packer.finish())
                    target.commit()
        except BaseException as error:  # noqa: BLE001  it is raised again in the thread that reads
            self._failure = error

    def _store(self, target: ObjectWriter, packed: Block) -> None:
        if packed:
            self._digest.update(packed)
            target.write(packed)
            self.bytes_stored += len(packed)


def write_object(objects: ObjectStore, key: str, content: bytes) -> Stored:
    """Store a small object in one go."""
    with objects.create(key) as target:
        target.write(content)
        target.commit()
    return Stored(key=key, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def prove_stored(objects: ObjectStore, stored: Stored, tick: Callable[[], None]) -> None:
    """Read the object back. Raises PackageMismatchError unless size and SHA-256 are what was written."""
    size = objects.stat(stored.key)
    if size != stored.bytes:
        raise PackageMismatchError(f"object {stored.key} holds {size} bytes where {stored.bytes} were written")
    digest = hashlib.sha256()
    for block in objects.open(stored.key):
        digest.update(block)
        tick()
    if digest.hexdigest() != stored.sha256:
        raise PackageMismatchError(f"object {stored.key} has SHA-256 {digest.hexdigest()}, not {stored.sha256}")
