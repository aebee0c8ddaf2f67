"""The worker's own clock: only ever compared with itself, never sent to the database."""

import time

# BOOTTIME goes on counting while a virtual machine is suspended; plain MONOTONIC does not, and a lease lapses anyway.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic_seconds() -> float:
    """Seconds since some fixed instant."""
    return time.clock_gettime(_CLOCK)
