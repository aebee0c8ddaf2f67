"""A server for the length of a test: fast instead of durable, and gone with everything in it at the end."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenure.wiring.embedded.binaries import PgBinaries
from tenure.wiring.embedded.server import EmbeddedServer, erase

FAST_SETTINGS: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


@contextlib.contextmanager
def throwaway_server(binaries: PgBinaries, settings: Mapping[str, str] | None = None) -> Iterator[EmbeddedServer]:
    """A running server in a new temporary directory; `settings` override the fast ones."""
    parent = Path(tempfile.mkdtemp(prefix="tenure-pg-"))
    parent.chmod(0o711)  # ours, so root's account may be let through; the data inside is private itself
    try:
        with EmbeddedServer(parent / "data", binaries, settings={**FAST_SETTINGS, **(settings or {})}) as server:
            yield server
    finally:
        erase(parent / "data")
        parent.rmdir()
