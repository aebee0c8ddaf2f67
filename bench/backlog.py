"""Queues filled by the server itself: millions of jobs in seconds, as the API would have left them.

Rows go straight into `tenure.jobs`, and each tenant gets one lane event that says how many arrived, which is what
`jobs/enqueue.sql` writes for a batch. Lanes whose settings matter are made beforehand.
"""

from sides.tenure_side import LEASE_SECONDS, QUEUE
from servers import execute

NEW_JOBS = f"""
    INSERT INTO tenure.jobs (id, tenant_id, queue, kind, args, state, max_attempts, max_crashes, lease_seconds)
    SELECT lpad(to_hex(nextval('tenure.job_seq')), 32, '0')::uuid, %(prefix)s || tenant, '{QUEUE}', %(kind)s,
           %(args)s::jsonb, 'queued', 25, 25, {LEASE_SECONDS}
      FROM generate_series(1, %(each)s), generate_series(1, %(tenants)s) AS tenant"""
"""Job by job in turn, as many producers at once would fill a queue. The id only has to be new and in order."""
ARRIVALS = f"""
    INSERT INTO tenure.lane_events (queue, tenant_id, arrived, head_priority, head_seq)
    SELECT '{QUEUE}', %(prefix)s || tenant, %(each)s, 0, 0 FROM generate_series(1, %(tenants)s) AS tenant"""
NEW_LANES = f"""
    INSERT INTO tenure.lanes (queue, tenant_id, weight, cap, paused)
    SELECT '{QUEUE}', %(prefix)s || tenant, %(weight)s, %(cap)s, %(paused)s
      FROM generate_series(1, %(tenants)s) AS tenant"""


def add_jobs(url: str, prefix: str, *, tenants: int, each: int, kind: str = "noop", args: str = "{}") -> None:
    """`each` jobs for each of the tenants `prefix`1, `prefix`2, ..."""
    values = {"prefix": prefix, "tenants": tenants, "each": each, "kind": kind, "args": args}
    execute(url, NEW_JOBS, ARRIVALS, parameters=values)


def add_lanes(
    url: str, prefix: str, *, tenants: int, weight: float = 1.0, cap: int = 1_000_000, paused: bool = False
) -> None:
    """Lanes with settings of their own; idle until jobs arrive."""
    values = {"prefix": prefix, "tenants": tenants, "weight": weight, "cap": cap, "paused": paused}
    execute(url, NEW_LANES, parameters=values)
