"""What a source is told, and what it tells about columns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from tenure.core.dataset import Dataset, Selection
from tenure.core.ids import TenantId

Tick = Callable[[], None]
"""Called at least ten times a second while a source is waited for, from the thread that waits. What it raises ends the
query on the server and passes through."""
Emit = Callable[[bytearray, int], None]
"""Takes a block of bytes and the number of rows that end in it; it owns the block from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """How to reach a source database. The role should own nothing and be able to read only."""

    url: str = field(repr=False)
    """libpq URL; may hold a password, so it is never shown."""
    connect_timeout_seconds: int = 5
    dead_peer_seconds: int = 30
    """How long a vanished server may keep a connection waiting (TCP keepalive and user timeout)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """One column of a dataset's query as the source describes it."""

    name: str
    type_name: str
    """For people and the manifest, with its modifier: `numeric(12,2)`."""
    cast_name: str
    """For casting a literal: without modifier, so that nothing is rounded or cut on the way in."""
    boolean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Rows of one dataset for one tenant, up to a cutoff, as one tenant chose them."""

    dataset: Dataset
    selection: Selection
    tenant_id: TenantId
    cutoff: datetime
