"""How long a worker may trust its own lease.

The database's clock alone judges expiry. A worker cannot see that clock, so it counts on its own monotonic clock from
an instant it is sure lies *before* the database extended the lease: the moment the request was sent. It stops a margin
earlier, so that its last side effect is over when the lease can lapse.
"""

from tenure.core import limits

MARGIN_SHARE = 0.1
MARGIN_SECONDS_MIN = 0.25


def margin_seconds(lease_seconds: float) -> float:
    """Seconds before the lease can lapse at which a run must be stopped; at most half the lease."""
    return min(max(MARGIN_SECONDS_MIN, lease_seconds * MARGIN_SHARE), lease_seconds / 2)


def stop_at(sent_at: float, lease_seconds: float) -> float:
    """Monotonic instant at which the run must be stopped unless a newer heartbeat was acknowledged."""
    return sent_at + lease_seconds - margin_seconds(lease_seconds)


def heartbeat_seconds(lease_seconds: float) -> float:
    """Longest time between two heartbeats."""
    return lease_seconds / limits.HEARTBEATS_PER_LEASE
