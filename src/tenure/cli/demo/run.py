"""The demo from the first step to `demo ok`. Whatever does not hold ends it with a sentence and a DemoError."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from rich.console import Console

from tenure.api.documents import ExportDocument
from tenure.cli.demo.client import TenantClient, tenant_client
from tenure.cli.demo.compare import compare
from tenure.cli.demo.crash import await_takeover, kill_while_reading
from tenure.cli.demo.download import fetch
from tenure.cli.demo.running import DemoError, Holder, RunningTenure
from tenure.cli.demo.source import Events
from tenure.cli.demo.steps import Steps, bytes_text, seconds_text
from tenure.cli.demo.watch import watch
from tenure.core.export import ExportStatus
from tenure.core.ids import JobId
from tenure.core.manifest import MANIFEST_NAME, SUMS_NAME
from tenure.core.run import RunOutcome, RunRecord
from tenure.exports.verify import VerifyReport, verify_package

COLUMNS = ("id", "occurred_at", "kind", "member_id", "payload", "ip", "amount", "labels")
OCCURRED_FROM, OCCURRED_TO = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
REQUEST = {
    "dataset": "events",
    "columns": COLUMNS,
    "filters": {"occurred_at": {"range": [OCCURRED_FROM, OCCURRED_TO]}},
    "format": "csv",
    "compression": "gzip",
    "delivery": {"type": "download"},
}
CRASH_TRIES = 3


def run_demo(running: RunningTenure, *, crash: bool, console: Console, steps: Steps | None = None) -> None:
    """Show one export from the request to the checked file. `steps` goes on counting where its owner left off.

    Raises DemoError when anything shown does not hold.
    """
    demo = _Demo(running, steps or Steps(console))
    demo.describe_sample()
    with tenant_client(running.api_url, running.tenant_key) as client:
        export = demo.export_with_crash(client) if crash else demo.export(client)
    folder = demo.download(export)
    report = demo.verify(folder, export)
    demo.compare(folder, report)
    demo.finish(folder, report)


class _Demo:
    """The steps, in order."""

    def __init__(self, running: RunningTenure, steps: Steps) -> None:
        self._running = running
        self._steps = steps
        self._workers: dict[int, int] = {}

    def describe_sample(self) -> None:
        steps, sample = self._steps, self._running.sample
        steps.title("A sample product's database, as yours may be")
        for table, rows in sample.tables.items():
            steps.fact(table, f"{rows:>7,} rows")
        steps.fact("tenants", f"{sample.tenants:>7,}, of which {self._running.tenant_id} is the largest")
        how = "as part of the start" if sample.filled else "it was there from an earlier run"
        steps.fact("time", f"{seconds_text(sample.seconds)}, {how}")

    def export(self, client: TenantClient) -> ExportDocument:
        export_id = self._ask(client)
        with self._steps.step("A worker reads, packs, stores and publishes it"):
            return self._finished(client, export_id)

    def export_with_crash(self, client: TenantClient) -> ExportDocument:
        """The worker dies once, for certain: an export that was quicker than the kill is asked for again."""
        steps = self._steps
        for _ in range(CRASH_TRIES):
            export_id = self._ask(client)
            with steps.step("A worker begins, and is killed in the middle of it"):
                killed = kill_while_reading(self._running, client, export_id, steps)
                if killed is None:
                    steps.fact("missed", "the export was done before its worker could be killed; once more")
                    continue
                self._remember(killed)
                self._remember(await_takeover(self._running, export_id, killed, steps))
            with steps.step("The next attempt starts afresh, and publishes"):
                return self._finished(client, export_id, lapsed=killed.attempt)
        raise DemoError(f"{CRASH_TRIES} exports were done before their worker could be killed")

    def download(self, export: ExportDocument) -> Path:
        folder = self._running.data_dir / "downloads" / export.job_id
        folder.mkdir(parents=True, exist_ok=True)
        links = {file.name: file.download_url for file in export.files} | {MANIFEST_NAME: export.manifest_url}
        with self._steps.step("The package is downloaded through signed links, without a key"):
            for name, url in links.items():
                if url is None:
                    raise DemoError(f"the export gives no link for {name}")
                self._fetch(url, folder / name, break_off=name not in {MANIFEST_NAME, SUMS_NAME})
        return folder

    def verify(self, folder: Path, export: ExportDocument) -> VerifyReport:
        steps = self._steps
        with steps.step("The package is checked against its manifest"):
            report = verify_package(folder, manifest_sha256=export.manifest_sha256)
            for finding in report.findings:
                steps.fact("wrong", f"{finding.file} {finding.problem}", style="red")
            if not report.ok or report.manifest is None:
                raise DemoError(f"the package in {folder} does not equal its manifest")
            steps.fact("rows", f"{report.rows:,}, as the manifest says")
            steps.fact("size", f"{report.bytes:,} bytes, as the manifest says")
            for file in report.manifest.files:
                steps.fact("sha256", f"{file.sha256} {file.name}")
            steps.fact("package", f"{report.manifest_sha256} (the manifest's own SHA-256, as the API gives it)")
        return report

    def compare(self, folder: Path, report: VerifyReport) -> None:
        steps = self._steps
        events = Events(
            tenant_id=self._running.tenant_id,
            columns=COLUMNS,
            occurred_from=OCCURRED_FROM,
            occurred_to=OCCURRED_TO,
        )
        with steps.step("The file is compared with the source, cell by cell"):
            (file,) = report.manifest.files if report.manifest else ()
            with steps.waiting() as tell:
                tell("reading both side by side")
                compared = compare(folder / file.name, self._running.sample.owner_url, events)
            steps.fact("count(*)", f"{compared.source_rows:,} rows in the source, {compared.rows:,} in the file")
            steps.fact("cells", f"{compared.cells:,} compared, all equal")

    def finish(self, folder: Path, report: VerifyReport) -> None:
        steps = self._steps
        names = [file.name for file in report.manifest.files] if report.manifest else []
        steps.line()
        steps.line("The files are yours to look at:", style="bold")
        steps.verbatim(f"cd {folder}")
        steps.verbatim(f"sha256sum -c {SUMS_NAME}")
        for name in names:
            steps.verbatim(f"gzip -dc {name} | head -3")
        steps.line()
        steps.line("To ask yourself: `tenure up` prints a key and the address to put here.", style="bold")
        steps.verbatim(curl_line(self._running.api_url))
        steps.line()
        steps.line(f"demo ok: {report.rows} rows, {report.bytes} bytes, sha256 verified", style="bold")

    def _ask(self, client: TenantClient) -> JobId:
        steps = self._steps
        with steps.step(f"{self._running.tenant_id} asks for its events of 2025"):
            steps.verbatim(f"POST {self._running.api_url}/v1/exports")
            steps.verbatim(request_text())
            asked = client.ask(REQUEST)
            steps.fact("answer", f"{asked.status.value} {asked.status.phrase}, status {asked.export.status}")
            steps.fact("location", asked.location)
        return JobId(UUID(asked.export.job_id))

    def _finished(self, client: TenantClient, export_id: JobId, *, lapsed: int | None = None) -> ExportDocument:
        export = watch(client, export_id, self._steps)
        runs = self._running.runs_of(export_id)
        for run in runs:
            self._show_run(run)
        if export.status is not ExportStatus.SUCCEEDED:
            why = f": {export.failure.code}, {export.failure.summary}" if export.failure else ""
            raise DemoError(f"export {export_id} is {export.status}{why}")
        if lapsed is not None:
            _check_outcomes(runs, lapsed)
        self._steps.fact("status", f"{export.status}: {export.rows or 0:,} rows, {bytes_text(export.bytes or 0)}")
        return export

    def _fetch(self, url: str, target: Path, *, break_off: bool) -> None:
        fetched = fetch(url, target, break_off=break_off)
        how = ""
        if fetched.resumed_at is not None:
            how = f"; broken off on purpose at {bytes_text(fetched.resumed_at)}, resumed with Range"
        self._steps.fact("file", f"{target.name}, {bytes_text(fetched.bytes)}{how}")

    def _remember(self, holder: Holder) -> None:
        self._workers[holder.attempt] = holder.pid

    def _show_run(self, run: RunRecord) -> None:
        words = [str(run.outcome)]
        if run.attempt in self._workers:
            words.append(f"worker {self._workers[run.attempt]}")
        words.append(f"after {seconds_text((run.finished_at - run.claimed_at).total_seconds())}")
        text = ", ".join(words)
        self._steps.fact(f"attempt {run.attempt}", f"{text}: {run.error_message}" if run.error_message else text)


def request_text() -> str:
    """The request's body, one field a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in REQUEST.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def curl_line(api_url: str) -> str:
    body = json.dumps({"dataset": "orders", "filters": {"status": "paid"}})
    return (
        f"curl -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d '{body}' {api_url}/v1/exports"
    )


def _check_outcomes(runs: Sequence[RunRecord], lapsed: int) -> None:
    """The killed attempt must be on record as lapsed, the last one as succeeded."""
    outcomes = {run.attempt: run.outcome for run in runs}
    last = max(outcomes, default=lapsed)
    for attempt, outcome in ((lapsed, RunOutcome.LEASE_EXPIRED), (last, RunOutcome.SUCCEEDED)):
        if outcomes.get(attempt) != outcome:
            raise DemoError(f"attempt {attempt} is recorded as {outcomes.get(attempt)}, not {outcome}")
