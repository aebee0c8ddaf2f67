"""One load under one or more policies: the same jobs for each."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import assert_never

from tenure.simulate.fair import FairShare
from tenure.simulate.fifo import FirstInFirstOut
from tenure.simulate.jobs import draw_jobs
from tenure.simulate.load import Load
from tenure.simulate.policy import Policy
from tenure.simulate.run import play
from tenure.simulate.summary import Summary, summarise


class PolicyName(StrEnum):
    """What a load can be played under."""

    FAIR = "fair"
    FIFO = "fifo"


def simulate(
    load: Load,
    policies: Sequence[PolicyName] = (PolicyName.FAIR,),
    watch: Callable[[PolicyName, float], None] | None = None,
) -> Iterator[Summary]:
    """A summary for each policy, in order. `watch` is told the part done of each, now and then."""
    jobs = draw_jobs(load)
    for name in policies:

        def tell(part: float, name: PolicyName = name) -> None:
            if watch is not None:
                watch(name, part)

        yield summarise(play(load, jobs, _policy(name, load), tell), name)


def _policy(name: PolicyName, load: Load) -> Policy:
    match name:
        case PolicyName.FAIR:
            return FairShare(load)
        case PolicyName.FIFO:
            return FirstInFirstOut(load)
        case _:
            assert_never(name)
