import contextlib
import gzip
import io
import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from uuid import UUID

import psycopg
import pytest
from rich.console import Console

from tenure.api.documents import ExportDocument, FailureDocument, ProgressDocument
from tenure.cli.demo.compare import cells, compare, records
from tenure.cli.demo.crash import KILL_AFTER_ROWS, await_takeover, kill_while_reading
from tenure.cli.demo.download import fetch
from tenure.cli.demo.run import REQUEST, _check_outcomes, curl_line, request_text
from tenure.cli.demo.running import DemoError, Holder, RunningTenure
from tenure.cli.demo.source import Events, open_source
from tenure.cli.demo.steps import Steps, bytes_text, seconds_text
from tenure.cli.demo.watch import watch
from tenure.cli.sample import BIG_TENANT, ensure_sample
from tenure.core.export import Compression, ExportStatus, Format
from tenure.core.ids import JobId
from tenure.core.run import RunOutcome

EXPORT_ID = JobId(UUID("01a22fb5-f16b-72e2-86d1-152f8ae94d92"))
COLUMNS = ("id", "occurred_at", "kind", "member_id", "payload", "ip", "amount", "labels")
EVENTS = Events(
    tenant_id="casa-azul",
    columns=COLUMNS,
    occurred_from="2025-01-01T00:00:00Z",
    occurred_to="2026-01-01T00:00:00Z",
)
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def sample(postgres_url):
    return ensure_sample(postgres_url, database="sample_for_tests")


@pytest.fixture(scope="module")
def exported(sample):
    """The file as PostgreSQL's own CSV output gives it, header included."""
    query = f"""COPY (SELECT {", ".join(COLUMNS)} FROM app.events WHERE account_id = 'casa-azul'
                AND occurred_at >= '2025-01-01Z' AND occurred_at < '2026-01-01Z' ORDER BY id) TO STDOUT (FORMAT csv)"""
    with psycopg.connect(sample.owner_url, options="-c TimeZone=UTC") as source, source.cursor().copy(query) as copy:
        return (",".join(COLUMNS) + "\n").encode() + b"".join(bytes(block) for block in copy)


@pytest.fixture
def steps():
    return Steps(Console(file=io.StringIO(), width=60, force_terminal=False))


def printed(steps):
    return steps.console.file.getvalue()


def stored(tmp_path, content):
    path = tmp_path / "events.csv.gz"
    path.write_bytes(gzip.compress(content))
    return path


def document(**changes):
    given = {
        "job_id": str(EXPORT_ID),
        "status": ExportStatus.RUNNING,
        "format": Format.CSV,
        "compression": Compression.GZIP,
        "datasets": ("events",),
        "requested_by": "somebody",
        "progress": None,
        "attempt": 1,
        "cancel_requested": False,
        "cutoff": MOMENT,
        "created_at": MOMENT,
        "finished_at": None,
        "expires_at": None,
        "next_retry_at": None,
        "download_url": None,
        "manifest_url": None,
        "manifest_sha256": None,
        "rows": None,
        "bytes": None,
        "files": (),
        "failure": None,
        "deliveries": (),
        "links": {},
    }
    return ExportDocument(**given | changes)


def progress(rows_done, phase="read"):
    return ProgressDocument(
        phase=phase, rows_done=rows_done, rows_expected=100, bytes_done=rows_done, percent=rows_done
    )


class FakeClient:
    """Shows one document after another, the last one for ever."""

    def __init__(self, *documents):
        self.documents = list(documents)

    def show(self, _export_id):
        return self.documents.pop(0) if len(self.documents) > 1 else self.documents[0]


def running(sample, **changes):
    given = {
        "api_url": "http://127.0.0.1:8080",
        "tenant_id": BIG_TENANT,
        "tenant_key": "secret",
        "data_dir": None,
        "sample": sample,
        "workers": lambda: [11, 12, 13, 14],
        "holder_of": lambda _: None,
        "runs_of": lambda _: (),
        "kill_worker": lambda _: None,
    }
    return RunningTenure(**given | changes)


# ---- comparing


def test_an_untouched_file_equals_the_source(tmp_path, sample, exported):
    compared = compare(stored(tmp_path, exported), sample.owner_url, EVENTS)

    assert compared.rows == compared.source_rows > 500
    assert compared.cells == compared.rows * len(COLUMNS)


def test_a_file_that_quotes_every_field_still_equals_the_source(tmp_path, sample, exported):
    rows = [cells(record) for record in records(io.StringIO(exported.decode(), newline="\n"))]
    quoted = [
        ",".join("" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows
    ]

    assert compare(stored(tmp_path, "".join(quoted).encode()), sample.owner_url, EVENTS).rows == len(rows) - 1


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (b"invoice.paid", b"invoice.pAid", "column kind: the file says 'invoice.pAid', the source says 'invoice.paid'"),
        (b",0.10,", b",0.1,", "column amount: the file says '0.1', the source says '0.10'"),
        (b",,", b',"",', "the file says '', the source says NULL"),
        (b"+00,", b"+01,", "column occurred_at"),
        (b"caf\xc3\xa9", b"cafe\xcc\x81", "column payload"),
        (b"two\nlines", b"two\r\nlines", "column labels"),
        (b"{mobile,beta}", b"{beta,mobile}", "column labels"),
    ],
)
def test_one_changed_cell_is_found_and_named(tmp_path, sample, exported, before, after, complaint):
    assert before in exported
    with pytest.raises(DemoError) as caught:
        compare(stored(tmp_path, exported.replace(before, after, 1)), sample.owner_url, EVENTS)

    assert complaint in str(caught.value)


def test_any_single_flipped_byte_is_found(tmp_path, sample, exported):
    """Eighty places spread over the file; whatever the byte was, the comparison must not pass."""
    start = exported.index(b"\n") + 1
    for place in range(start, len(exported) - 1, (len(exported) - start) // 80):
        changed = bytearray(exported)
        changed[place] = ord("x") if changed[place] != ord("x") else ord("y")
        with pytest.raises((DemoError, UnicodeDecodeError)):
            compare(stored(tmp_path, bytes(changed)), sample.owner_url, EVENTS)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows[:-1], "only the source has a row"),
        (lambda rows: [*rows, rows[-1]], "only the file has a row"),
        (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], "row 1, column id"),
        (lambda rows: [rows[0].replace("amount", "total"), *rows[1:]], "begins with the columns"),
        (lambda rows: [rows[0], rows[1] + ",", *rows[2:]], "row 1 has 9 fields where the source has 8"),
        (lambda rows: [*rows[:-1], rows[-1] + '"'], "ends inside a quoted field"),
        (lambda rows: [rows[0], '1,x"y"', *rows[2:]], "not well-formed CSV"),
    ],
)
def test_rows_that_are_lost_doubled_moved_or_torn_are_found(tmp_path, sample, exported, change, complaint):
    rows = change(list(records(io.StringIO(exported.decode(), newline="\n"))))
    with pytest.raises(DemoError, match=complaint):
        compare(stored(tmp_path, "".join(f"{row}\n" for row in rows).encode()), sample.owner_url, EVENTS)


def test_null_and_empty_text_are_told_apart():
    assert cells('1,,"",",","a ""b"""') == ["1", None, "", ",", 'a "b"']
    assert cells(",") == [None, None]


# ---- downloading


class RangeServer(BaseHTTPRequestHandler):
    content = bytes(range(256)) * 4_000
    etag = '"one"'
    asked: ClassVar[list[str | None]] = []

    def do_GET(self):
        if self.path == "/gone":
            self.send_error(410)
            return
        asked = self.headers.get("Range")
        self.asked.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if self.path == "/changing" and asked:
            start = 0
        self.send_response(206 if start else 200)
        self.send_header("ETag", self.etag)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        part = self.content[start:]
        if self.path == "/breaking" and not asked:
            part = part[:1000]
        with contextlib.suppress(ConnectionError):
            self.wfile.write(part)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def file_server():
    RangeServer.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), RangeServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_download_broken_off_half_way_is_resumed_by_range(tmp_path, file_server):
    fetched = fetch(f"{file_server}/file", tmp_path / "file", break_off=True)

    assert (tmp_path / "file").read_bytes() == RangeServer.content
    assert fetched.bytes == len(RangeServer.content)
    assert fetched.resumed_at >= fetched.bytes // 2
    assert RangeServer.asked == [None, f"bytes={fetched.resumed_at}-"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_download_that_breaks_by_itself_is_resumed_too(tmp_path, file_server):
    assert fetch(f"{file_server}/breaking", tmp_path / "file").resumed_at == 1000
    assert (tmp_path / "file").read_bytes() == RangeServer.content


def test_a_file_that_changed_meanwhile_is_taken_anew(tmp_path, file_server):
    assert fetch(f"{file_server}/changing", tmp_path / "file", break_off=True).resumed_at is None
    assert (tmp_path / "file").read_bytes() == RangeServer.content


def test_a_link_that_is_refused_is_said_so(tmp_path, file_server):
    with pytest.raises(DemoError, match="signed link of file was answered 410"):
        fetch(f"{file_server}/gone", tmp_path / "file")


# ---- watching and killing


def test_without_a_terminal_progress_is_a_few_plain_lines(steps):
    shown = [document(progress=progress(rows)) for rows in range(0, 100, 5)]
    finished = document(status=ExportStatus.SUCCEEDED, progress=progress(100), rows=100, bytes=5)

    assert watch(FakeClient(*shown, finished), EXPORT_ID, steps) is finished
    lines = printed(steps).splitlines()
    assert lines[0] == "   progress  reading: 0 of 100 rows, 0 %"
    assert len(lines) == 4


def test_the_worker_that_reads_is_killed_while_the_source_sends(steps, sample):
    killed = []
    copying = threading.Event()
    done = threading.Event()
    label = f"tenure export {EXPORT_ID} 1"

    def read_slowly():
        with psycopg.connect(sample.owner_url, application_name=label) as connection:
            query = "COPY (SELECT * FROM app.events WHERE account_id = 'northwind-clinic' ORDER BY id) TO STDOUT"
            with connection.cursor().copy(query) as copy:
                for number, _ in enumerate(copy):
                    if number == 2 * KILL_AFTER_ROWS:
                        copying.set()
                        done.wait(60)

    thread = threading.Thread(target=read_slowly)
    thread.start()
    try:
        assert copying.wait(60)
        holder = Holder(pid=12, attempt=1, lease_seconds_left=4.2)
        tenure = running(sample, holder_of=lambda _: holder, kill_worker=killed.append)
        assert kill_while_reading(tenure, FakeClient(document()), EXPORT_ID, steps) is holder
    finally:
        done.set()
        thread.join()

    assert killed == [12]
    assert "worker 12, in attempt 1" in printed(steps)
    assert "3 other workers" in " ".join(printed(steps).split())


def test_an_export_that_is_over_before_the_kill_is_told_apart(steps, sample):
    over = FakeClient(document(status=ExportStatus.SUCCEEDED))

    assert kill_while_reading(running(sample), over, EXPORT_ID, steps) is None


def test_a_takeover_is_a_later_attempt(steps, sample):
    killed = Holder(pid=12, attempt=1, lease_seconds_left=0.2)
    holders = [killed, None, Holder(pid=14, attempt=2, lease_seconds_left=5)]
    tenure = running(sample, holder_of=lambda _: holders.pop(0))

    assert await_takeover(tenure, EXPORT_ID, killed, steps).pid == 14
    assert "by worker 14" in printed(steps)


class Run:
    def __init__(self, attempt, outcome):
        self.attempt = attempt
        self.outcome = outcome


@pytest.mark.parametrize(
    ("outcomes", "complaint"),
    [
        (["succeeded"], "attempt 1 is recorded as succeeded, not lease_expired"),
        (["failed", "succeeded"], "attempt 1 is recorded as failed"),
        (["lease_expired"], "attempt 1 is recorded as lease_expired, not succeeded"),
        ([], "attempt 1 is recorded as None"),
    ],
)
def test_a_crash_that_left_another_record_is_no_success(outcomes, complaint):
    runs = [Run(number, outcome) for number, outcome in enumerate(outcomes, start=1)]
    with pytest.raises(DemoError, match=complaint):
        _check_outcomes(runs, 1)


def test_a_crash_recorded_as_it_was_is_a_success():
    _check_outcomes([Run(1, RunOutcome.LEASE_EXPIRED), Run(2, RunOutcome.SUCCEEDED)], 1)


# ---- printing


def test_in_sixty_columns_only_what_is_to_be_copied_is_longer(steps):
    with steps.step("A title that is long enough to be broken into two lines at this width"):
        steps.fact("rows", "a fact that goes on and on until it does not fit on one line of the terminal " * 2)
        steps.verbatim("copy " + "x" * 90)
    text = printed(steps)

    assert [line for line in text.splitlines() if len(line) > 60] == ["   copy " + "x" * 90]
    assert text.isascii()
    assert "\x1b" not in text
    assert text.splitlines()[1].startswith("1  A title")
    assert text.splitlines()[2].startswith("   ")


def test_steps_are_numbered_and_a_failed_one_tells_no_time(steps):
    with steps.step("First"):
        pass
    with pytest.raises(DemoError), steps.step("Second"):
        raise DemoError("it broke")
    text = printed(steps)

    assert "2  Second" in text
    assert text.count("time") == 1


def test_numbers_read_as_a_person_would_say_them():
    assert [seconds_text(value) for value in (0.0123, 1.234, 12.34)] == ["12 ms", "1.23 s", "12.3 s"]
    assert [bytes_text(value) for value in (909, 12_559_366)] == ["909 bytes", "12.6 MB"]


def test_the_request_shown_is_the_request_sent():
    assert json.loads(request_text()) == json.loads(json.dumps(REQUEST))
    assert curl_line("http://h:1").endswith(" http://h:1/v1/exports")


def test_the_source_counts_and_reads_the_same_rows(sample):
    with open_source(sample.owner_url, snapshot=True) as source:
        assert len(list(source.rows(EVENTS))) == source.count(EVENTS)
        assert source.rows_sent(EXPORT_ID) == 0


def test_a_failed_export_is_still_an_answer_of_watching(steps):
    failure = FailureDocument(code="query_timeout", summary="too slow", phase="read")
    failed = document(status=ExportStatus.FAILED, failure=failure)

    assert watch(FakeClient(failed), EXPORT_ID, steps).failure == failure
