"""Kinds of jobs: what runs, how isolated, how often tried, and who is told of the end."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tenure.core import limits
from tenure.core.job import JobEnd
from tenure.core.retry import RetryPolicy
from tenure.engine.context import RunContext
from tenure.store.database import Connection

Handler = Callable[[RunContext], Any]
OnEnd = Callable[[Connection, JobEnd], Awaitable[None]]


class Isolation(StrEnum):
    """Where a handler runs."""

    TASK = "task"
    """In the worker's event loop: for async handlers that never block."""
    THREAD = "thread"
    """In a thread of the worker: for short blocking handlers; a thread cannot be killed."""
    PROCESS = "process"
    """In a child process: it can be killed, and cannot take the worker down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A registered kind of job."""

    name: str
    handler: Handler
    args_type: type = dict
    queue: str = "default"
    isolation: Isolation = Isolation.PROCESS
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_crashes: int = limits.CRASHES_MAX_DEFAULT
    lease_seconds: float = limits.LEASE_SECONDS_DEFAULT
    time_limit_seconds: float = 3_600.0
    """Per attempt; beyond it the run fails with `time_limit`, retryable."""
    cancel_grace_seconds: float = 5.0
    """After a cancel request the handler has this long to reach a safe point, then it is killed."""
    on_end: OnEnd | None = None
    """Called inside the transaction that ends the job or a run; raising undoes the end."""


class Kinds(Mapping[str, Kind]):
    """All kinds a process knows. A worker claims, reaps and expires no other."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[str, Kind] = {}
        for kind in kinds:
            if kind.name in self._kinds:
                raise ValueError(f"kind {kind.name} is registered twice")
            self._kinds[kind.name] = kind

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def queues(self) -> tuple[str, ...]:
        return tuple(sorted({kind.queue for kind in self._kinds.values()}))

    def batches(self) -> list[tuple[str, ...]]:
        """Kinds whose ends may share a transaction: those nobody is told of together, every other one alone.

        An `on_end` that raises then holds up its own kind and no other.
        """
        plain = tuple(name for name, kind in self._kinds.items() if kind.on_end is None)
        told = [(name,) for name, kind in self._kinds.items() if kind.on_end is not None]
        return ([plain] if plain else []) + told

    async def tell(self, connection: Connection, end: JobEnd) -> None:
        """Let the kind of an ended job or run write what follows from it, in the same transaction."""
        on_end = self._kinds[end.kind].on_end
        if on_end is not None:
            await on_end(connection, end)
