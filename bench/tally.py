"""A file in shared memory in which a worker process writes when each job was done; the bench reads it while it runs.

Only the standard library: peers import it from environments of their own. CLOCK_MONOTONIC is one clock for all
processes of a machine, so instants of several processes can be compared.
"""

import mmap
import struct
import time
from pathlib import Path

_COUNT = struct.Struct("<q")
_INSTANT = struct.Struct("<d")
_HEAD = _COUNT.size


class Tally:
    """Instants in the order they happened. One process writes, any number read."""

    def __init__(self, path: Path, *, capacity: int | None = None) -> None:
        """With `capacity` the file is made anew; without it an existing one is opened."""
        if capacity is not None:
            with path.open("wb") as new:
                new.truncate(_HEAD + capacity * _INSTANT.size)
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._capacity = (len(self._memory) - _HEAD) // _INSTANT.size

    def mark(self) -> int:
        """Write down this instant; returns how many there are now. What is beyond the capacity is only counted."""
        count = self.count()
        if count < self._capacity:
            _INSTANT.pack_into(self._memory, _HEAD + count * _INSTANT.size, time.monotonic())
        _COUNT.pack_into(self._memory, 0, count + 1)
        return count + 1

    def count(self) -> int:
        return int(_COUNT.unpack_from(self._memory, 0)[0])

    def instants(self) -> list[float]:
        count = min(self.count(), self._capacity)
        return list(struct.unpack_from(f"<{count}d", self._memory, _HEAD))
