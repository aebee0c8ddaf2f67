"""Run a claimed job's handler where its kind says, and give back how it ended."""

from tenure.core.run import Failed, RunEnd, RunError
from tenure.engine.handlers import Isolation
from tenure.engine.isolation.inside import run_inside
from tenure.engine.isolation.process import ChildPool, ChildStartError
from tenure.engine.isolation.work import Work


async def execute_run(work: Work, children: ChildPool) -> RunEnd:
    """Run one job. Never raises for what a handler does."""
    if work.kind.isolation is not Isolation.PROCESS:
        return await run_inside(work)
    try:
        return await children.run(work)
    except ChildStartError as error:
        return Failed(error=RunError(error_class="ChildStartError", message=str(error), code="child_start_failed"))
