"""When a failed run is tried again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Wait before the next attempt: `base * factor ** (failures - 1)`, capped, with jitter taken off.

    `factor=1` is a fixed wait. Jitter is a share (0 to 1): the wait lies in `[(1 - jitter) * wait, wait]`.
    """

    max_attempts: int = 5
    base_seconds: float = 5.0
    factor: float = 2.0
    cap_seconds: float = 900.0
    jitter: float = 0.2

    def wait_seconds(self, *, failures: int, chance: float) -> float:
        """Seconds to wait after the given number of failures (>= 1). `chance` is uniform in [0, 1)."""
        # The exponent is bounded so that a huge failure count cannot overflow a float.
        full = min(self.cap_seconds, self.base_seconds * self.factor ** min(failures - 1, 64))
        return full * (1 - self.jitter * chance)


def lapse_wait_seconds(lapses: int, *, base_seconds: float, cap_seconds: float) -> float:
    """Seconds to wait after the given number of lapses in a row: none after the first, then doubling."""
    if lapses < 2:  # noqa: PLR2004  the second in a row is where waiting begins (SPEC 1.1)
        return 0.0
    return float(min(cap_seconds, base_seconds * 2.0 ** min(lapses - 2, 32)))
