"""A sampling profiler of one thread, in thirty lines: an interval timer of CPU time and a stack at each tick."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

INTERVAL_SECONDS = 0.002


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Write "count<TAB>outermost;...;innermost" lines of the main thread, by CPU time of the whole process."""
    stacks: Counter[str] = Counter()

    def tick(_: int, frame: FrameType | None) -> None:
        names = []
        while frame is not None:
            place = Path(frame.f_code.co_filename)
            names.append(f"{place.parent.name}/{place.name}:{frame.f_code.co_qualname}")
            frame = frame.f_back
        stacks[";".join(reversed(names))] += 1

    signal.signal(signal.SIGPROF, tick)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.write_text("".join(f"{count}\t{stack}\n" for stack, count in stacks.most_common()))
