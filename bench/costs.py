"""Where the time of a drained job goes: CPU of client and server per job, the costliest statements and stacks.

Run by hand: `.venv/bin/python bench/costs.py [settings of the worker]`. CPU per job is what to compare on a machine
that does other things too: jobs per second say little there.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from servers import WATCHED, bench_server, execute, query, vacuum
from systems import TENURE, at_work, new_database, run_side

JOBS = 20_000
SHOWN = 25
STATEMENTS = """
    SELECT round(total_exec_time * 1000 / %(jobs)s), calls, rows, round(wal_bytes / %(jobs)s), left(query, 60)
      FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
     ORDER BY total_exec_time DESC LIMIT 8"""
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def main() -> None:
    system = TENURE.with_settings(tuple(sys.argv[1:]) or TENURE.work)
    with bench_server(WATCHED) as server, tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        url = new_database(server, system)
        run_side(system, "fill", url, "--jobs", str(JOBS), "--tenants", "10")
        vacuum(url)
        execute(url, "CREATE EXTENSION pg_stat_statements", "SELECT pg_stat_statements_reset()")
        server.checkpoint()
        stacks = Path(folder) / "stacks"
        with at_work(system, url, capacity=JOBS, options=("--profile", str(stacks))) as workers:
            workers.wait_done(JOBS // 10)
            begun, done = time.monotonic(), workers.done()
            backends = [row[0] for row in query(url, BACKENDS)]
            before = [_cpu_seconds([workers.processes[0].pid]), _cpu_seconds(backends)]
            workers.wait_done(JOBS * 9 // 10)
            count, seconds = workers.done() - done, time.monotonic() - begun
            after = [_cpu_seconds([workers.processes[0].pid]), _cpu_seconds(backends)]
        client, backend = ((end - start) / count * 1e6 for start, end in zip(before, after, strict=True))
        print(f"{' '.join(system.work)}: {count / seconds:,.0f} jobs/s; CPU per job: client {client:.0f} us, ", end="")
        print(f"server {backend:.0f} us\n\nus/job  calls  rows  WAL bytes/job  statement")
        for microseconds, calls, rows, wal, text in query(url, STATEMENTS, {"jobs": JOBS}):
            print(f"{microseconds:6}  {calls:5}  {rows:6}  {wal:6}  {' '.join(text.split())}")
        _show_stacks(stacks)


def _cpu_seconds(pids: list[int]) -> float:
    """By the scheduler's own count, in nanoseconds, of all threads of the processes that still run."""
    tasks = (task for pid in pids for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _show_stacks(path: Path) -> None:
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        count, _, stack = line.partition("\t")
        frames = stack.split(";")
        own[frames[-1]] += int(count)
        within.update(dict.fromkeys(set(frames), int(count)))
    total = own.total() or 1
    for title, counter in (("the frame itself", own), ("the frame and what it calls", within)):
        print(
            f"\n{title}, of {total} samples{os.linesep}"
            + "\n".join(f"{count / total:6.1%}  {frame}" for frame, count in counter.most_common(SHOWN))
        )


if __name__ == "__main__":
    main()
