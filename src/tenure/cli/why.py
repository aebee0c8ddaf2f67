"""`tenure why`: why a job, or a tenant's next one, is where it is."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import click

from tenure.cli.operator import ask, count_text, limit_text
from tenure.cli.options import config_option, json_option
from tenure.core import limits
from tenure.core.durations import spoken_duration
from tenure.core.ids import JobId, TenantId
from tenure.core.place import ExpectedStart
from tenure.core.why import Attempt, JobWhy, LaneNumbers, QueueNumbers, TenantWhy, Timeline


@click.command
@config_option
@json_option
@click.argument("tenant")
@click.argument("job_id", type=click.UUID, required=False)
@click.option("--queue", default=None, help="Instead of a job: why this tenant's next job in the queue waits.")
def why(config: Path | None, as_json: bool, tenant: str, job_id: UUID | None, queue: str | None) -> None:  # noqa: FBT001  click's way
    """Tell why a tenant's job is where it is, about when it starts, and where its time went."""
    import msgspec  # noqa: PLC0415

    tenant_id = TenantId(tenant)
    if job_id is not None and queue is None:
        found = ask(config, lambda operator: operator.why_job(tenant_id, JobId(job_id)))
        click.echo(msgspec.json.encode(found) if as_json else "\n".join(_job_lines(found)))
    elif queue is not None and job_id is None:
        answer = ask(config, lambda operator: operator.why_tenant(queue, tenant_id))
        click.echo(msgspec.json.encode(answer) if as_json else "\n".join(_tenant_lines(answer)))
    else:
        raise click.UsageError("Give either a JOB_ID or --queue.")


def _job_lines(found: JobWhy) -> Iterator[str]:
    job = found.job
    yield found.sentence
    yield ""
    yield _fact("job", f"{job.kind} {job.id} of {job.tenant_id} in {job.queue}")
    yield _fact("state", f"{job.state}, attempt {job.attempt}")
    yield _fact("reason", ", ".join((found.reason, *found.also)))
    if found.position is not None:
        yield _fact("position", f"{count_text(found.position, limits.WAITING_COUNT_MAX + 1)} in the tenant's lane")
    yield from _start_lines(found.expected_start)
    if found.owner is not None:
        owner = found.owner
        left = f"lease ends in {spoken_duration(owner.lease_seconds_left)}"
        yield _fact("worker", f"{owner.host or 'unknown'} pid {owner.pid or 'unknown'}, {left}")
    if found.lane is not None and found.queue is not None:
        yield from _number_lines(found.lane, found.queue)
    yield from _timeline_lines(found.timeline)


def _tenant_lines(found: TenantWhy) -> Iterator[str]:
    yield found.sentence
    yield ""
    yield _fact("tenant", f"{found.tenant_id} in {found.queue_name}")
    yield _fact("reason", ", ".join((found.reason, *found.also)))
    yield _fact("waiting", count_text(found.waiting, limits.WAITING_COUNT_MAX))
    yield from _start_lines(found.expected_start)
    yield from _number_lines(found.lane, found.queue)


def _start_lines(start: ExpectedStart | None) -> Iterator[str]:
    if start is None:
        return
    earliest, latest = spoken_duration(start.earliest_seconds), start.latest_seconds
    end = "no promise when at the latest" if latest is None else f"at the latest in {spoken_duration(latest)}"
    yield _fact("starts", f"in {earliest} at the earliest, {end}, if nobody else comes")


def _number_lines(lane: LaneNumbers, queue: QueueNumbers) -> Iterator[str]:
    due = "unknown" if lane.share_due is None else f"{lane.share_due:.0%}"
    yield _fact("tenant", f"{lane.running} running, cap {limit_text(lane.cap)}, ceiling {limit_text(lane.ceiling)}")
    yield _fact("share", f"{lane.share_used:.0%} of the slots in use, {due} due by weight {lane.weight:g}")
    yield _fact("account", f"{_lead_text(lane.lead_seconds)} the tenant whose turn is next")
    used = f"{queue.running} of {limit_text(queue.slots)} slots in use, {queue.free} free, headroom {queue.headroom}"
    yield _fact("queue", f"{used}; {queue.tenants_ahead} tenants come first")
    yield _fact("workers", f"{queue.workers} with {queue.worker_slots} slots")


def _lead_text(seconds: float) -> str:
    if abs(seconds) < 0.05:  # noqa: PLR2004  it would read as 0.0
        return "level with"
    return f"{spoken_duration(abs(seconds))} of worker time {'ahead of' if seconds > 0 else 'behind'}"


def _timeline_lines(timeline: Timeline) -> Iterator[str]:
    yield _fact(
        "time",
        f"{spoken_duration(timeline.total_seconds)}: {spoken_duration(timeline.waited_seconds)} in line, "
        f"{spoken_duration(timeline.delayed_seconds)} until it was ready, "
        f"{spoken_duration(timeline.ran_seconds)} running",
    )
    for attempt in timeline.attempts:
        yield _fact(f"run {attempt.attempt}", _attempt_text(attempt))


def _attempt_text(attempt: Attempt) -> str:
    waited, ran = spoken_duration(attempt.waited_seconds), spoken_duration(attempt.ran_seconds)
    error = f": {attempt.error_code}, {attempt.error_message}" if attempt.error_code else ""
    outcome = attempt.outcome or "running"
    delayed = f"{spoken_duration(attempt.delayed_seconds)} until ready, " if attempt.delayed_seconds >= 1 else ""
    return f"{outcome}, {delayed}{waited} in line, {ran} running on {attempt.host or 'unknown'}{error}"


def _fact(name: str, value: str) -> str:
    return f"  {name:<9} {value}"
