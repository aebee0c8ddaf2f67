"""What the end of a run means for its job. Pure: budgets and policy come in, the decision goes out."""

from dataclasses import dataclass
from typing import assert_never

from tenure.core.job import Claim, Fence
from tenure.core.lifecycle import TRANSITIONS, JobEvent, JobState
from tenure.core.retry import RetryPolicy
from tenure.core.run import Cancelled, Crashed, Failed, Released, RunEnd, RunError, RunOutcome, RunUsage, Succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One run's end, decided: what the settle statement writes."""

    fence: Fence
    event: JobEvent
    outcome: RunOutcome
    usage: RunUsage
    wait_seconds: float = 0.0
    error: RunError | None = None
    result: bytes | None = None

    @property
    def state(self) -> JobState:
        return TRANSITIONS[JobState.RUNNING, self.event]

    @property
    def counts_as_failure(self) -> bool:
        return self.event in (JobEvent.RETRY, JobEvent.FAIL)

    @property
    def counts_as_crash(self) -> bool:
        return self.event in (JobEvent.LAPSE, JobEvent.LAPSE_AGAIN, JobEvent.QUARANTINE)

    @property
    def counts_as_release(self) -> bool:
        return self.event is JobEvent.RELEASE


def decide(claim: Claim, end: RunEnd, policy: RetryPolicy, *, chance: float) -> Settlement:
    """Turn a run's end into the job's next move. `chance` is uniform in [0, 1), for the jitter."""
    match end:
        case Succeeded():
            return Settlement(
                fence=claim.fence,
                event=JobEvent.SUCCEED,
                outcome=RunOutcome.SUCCEEDED,
                usage=end.usage,
                result=end.result,
            )
        case Released():
            return Settlement(fence=claim.fence, event=JobEvent.RELEASE, outcome=RunOutcome.RELEASED, usage=end.usage)
        case Cancelled():
            return Settlement(fence=claim.fence, event=JobEvent.CANCEL, outcome=RunOutcome.CANCELLED, usage=end.usage)
        case Failed():
            return _failed(claim, end, policy, chance)
        case Crashed():
            return _crashed(claim, end, policy, chance)
        case _:
            assert_never(end)


def _failed(claim: Claim, end: Failed, policy: RetryPolicy, chance: float) -> Settlement:
    failures = claim.failures + 1
    again = end.error.retryable and failures < claim.max_attempts
    wait = policy.wait_seconds(failures=failures, chance=chance)
    if end.error.retry_after_seconds is not None:
        wait = min(max(end.error.retry_after_seconds, 0.0), policy.cap_seconds)
    return Settlement(
        fence=claim.fence,
        event=JobEvent.RETRY if again else JobEvent.FAIL,
        outcome=RunOutcome.FAILED,
        usage=end.usage,
        wait_seconds=wait,
        error=end.error,
    )


def _crashed(claim: Claim, end: Crashed, policy: RetryPolicy, chance: float) -> Settlement:
    crashes = claim.crashes + 1
    # The first crash goes on at once, like a first lapsed lease; a job that keeps killing its process waits.
    if crashes >= claim.max_crashes:
        event = JobEvent.QUARANTINE
    else:
        event = JobEvent.LAPSE if crashes == 1 else JobEvent.LAPSE_AGAIN
    return Settlement(
        fence=claim.fence,
        event=event,
        outcome=RunOutcome.FAILED,
        usage=end.usage,
        wait_seconds=policy.wait_seconds(failures=crashes, chance=chance),
        error=end.error,
    )


def lapse_event(*, cancel_requested: bool, crashes: int, max_crashes: int, lapses: int) -> JobEvent:
    """Event of a lapsed lease; `crashes` and `lapses` (in a row) already count this one."""
    if cancel_requested:
        return JobEvent.CANCEL
    if crashes >= max_crashes:
        return JobEvent.QUARANTINE
    return JobEvent.LAPSE if lapses < 2 else JobEvent.LAPSE_AGAIN  # noqa: PLR2004  SPEC 1.1: from the second on
