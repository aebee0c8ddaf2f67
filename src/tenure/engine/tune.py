"""Change weights, caps, pauses and slots while everything runs: at once on the existing backlog, and written down.

Each change is one transaction: under the queue's lock the lane events are folded, so that what ended before counts by
the old values; the row changes; the audit log gets both sets of values; the doorbell rings, so that idle workers claim
by the new values now.
"""

from dataclasses import asdict

from tenure.core import limits
from tenure.core.errors import NotFoundError
from tenure.core.ids import TenantId
from tenure.core.tuning import (
    LaneChanges,
    LaneSettings,
    LaneView,
    QueueChanges,
    QueueSettings,
    QueueView,
    is_name,
    require_tenant_id,
)
from tenure.store import audit, doorbells, lanes, queues
from tenure.store.database import Connection


async def tune_lane(
    connection: Connection, actor: str, queue: str, tenant_id: TenantId, changes: LaneChanges
) -> LaneSettings:
    """Change a tenant's settings in a queue. Raises `InvalidInputError`; `NotFoundError` for an unknown queue.

    A tenant that never had work there gets its lane now, at the floor. A lane that was paused, or had no room, goes on
    at the floor at least: it has saved nothing up.
    """
    changes.require_valid()
    tenant_id = require_tenant_id(tenant_id)
    _require_name(queue)
    async with connection.transaction():
        await queues.lock(connection, queue)
        await lanes.fold(connection, queue)
        is_new = await lanes.open_lane(connection, queue, tenant_id)
        tuned = await lanes.tune(connection, queue, tenant_id, changes)
        if tuned is None:
            raise NotFoundError("queue")
        await audit.append(
            connection,
            actor,
            "lane.tune",
            f"{queue}/{tenant_id}",
            tenant_id=tenant_id,
            before=None if is_new else _values(tuned.before),
            after=_values(tuned.after),
        )
        await doorbells.ring(connection, queue)
    return tuned.after


async def tune_queue(connection: Connection, actor: str, queue: str, changes: QueueChanges) -> QueueSettings:
    """Change a queue's settings. Raises `InvalidInputError`; `NotFoundError` for an unknown queue."""
    changes.require_valid()
    _require_name(queue)
    async with connection.transaction():
        await queues.lock(connection, queue)
        tuned = await queues.tune(connection, queue, changes)
        if tuned is None:
            raise NotFoundError("queue")
        await audit.append(
            connection, actor, "queue.tune", queue, before=_values(tuned.before), after=_values(tuned.after)
        )
        await doorbells.ring(connection, queue)
    return tuned.after


async def list_queues(connection: Connection) -> tuple[QueueView, ...]:
    """Every queue that some worker ever took jobs from, by name."""
    return tuple(await queues.list_queues(connection))


async def list_lanes(
    connection: Connection, queue: str, count: int, after: TenantId | None = None
) -> tuple[LaneView, ...]:
    """A page of a queue's lanes by tenant id, from the one behind `after` on. Raises `NotFoundError`."""
    _require_name(queue)
    if not await queues.list_queues(connection, queue):
        raise NotFoundError("queue")
    return tuple(await lanes.list_lanes(connection, queue, count, after))


def _require_name(queue: str) -> None:
    if not is_name(queue, limits.QUEUE_NAME_CHARS_MAX):
        raise NotFoundError("queue")


def _values(settings: LaneSettings | QueueSettings) -> dict[str, object]:
    return {name: value for name, value in asdict(settings).items() if name not in {"queue", "tenant_id"}}
