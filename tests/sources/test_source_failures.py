"""How reading ends early: too slow, cancelled, cut off, refused. Nothing keeps running on the server afterwards."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from source_server import dataset, execute, no_query_left, opened, request, tenure_copies

from tenure.core.errors import QueryTimeoutError, SourceQueryError, SourceUnavailableError
from tenure.core.manifest import Dialect

SLEEPS = "SELECT 1 AS id, 'acme'::text AS tenant, pg_sleep(600)::text AS nap"
LONG = "SELECT * FROM long"
"""Twenty megabytes: far more than sockets and blocks hold, so it runs until somebody ends it."""


class StopError(Exception):
    """What a cancelled run raises."""


@pytest.fixture
def long_url(source_url):
    execute(
        source_url,
        "CREATE TABLE long AS SELECT i AS id, 'acme'::text AS tenant, repeat('x', 1000) AS text"
        " FROM generate_series(1, 20000) i",
    )
    return source_url


def ignore(block, rows):
    return None


def test_a_query_that_runs_too_long_is_ended_on_its_server(source_url):
    slow = dataset(SLEEPS, columns=("id", "nap"), query_timeout_seconds=0.2)
    with opened(source_url) as source, pytest.raises(QueryTimeoutError, match=r'"orders".*limit of 0.2 s') as caught:
        source.copy_csv(request(slow), Dialect(), ignore)
    assert caught.value.retryable
    assert caught.value.phase == "read"
    assert isinstance(caught.value.__cause__, psycopg.errors.QueryCanceled)
    assert no_query_left(source_url)


def test_counting_too_has_the_time_limit(source_url):
    slow = dataset(SLEEPS + " WHERE pg_sleep(600) IS NOT NULL", query_timeout_seconds=0.2)
    with opened(source_url) as source, pytest.raises(QueryTimeoutError) as caught:
        source.count(request(slow))
    assert caught.value.phase == "plan"


def test_each_dataset_has_its_own_limit(source_url):
    hasty = dataset("SELECT 1 AS id, 'acme'::text AS tenant", query_timeout_seconds=0.05)
    nap = "SELECT 1 AS id, 'acme'::text AS tenant, pg_sleep(0.2)::text AS nap"
    patient = dataset(nap, columns=("nap",), name="patient")
    with opened(source_url) as source:
        source.columns(patient)
        source.count(request(hasty))
        assert source.copy_csv(request(patient), Dialect(), ignore) == 1


def test_a_cancelled_run_ends_a_silent_query_on_its_server(source_url):
    """Closing the connection alone would leave `pg_sleep` running: the server only notices when it writes."""

    def cancelled_once_running():
        if tenure_copies(source_url):
            raise StopError

    with pytest.raises(StopError), opened(source_url, tick=cancelled_once_running) as source:
        source.copy_csv(request(dataset(SLEEPS, columns=("id", "nap"))), Dialect(), ignore)
    assert no_query_left(source_url)


def test_a_cancelled_run_ends_a_query_whose_rows_are_under_way(long_url):
    blocks = []

    def cancelled_after_a_block():
        if blocks:
            raise StopError

    long = dataset(LONG, columns=("id", "text"))
    with pytest.raises(StopError), opened(long_url, tick=cancelled_after_a_block) as source:
        source.copy_csv(request(long), Dialect(), lambda block, rows: blocks.append(rows))
    assert len(blocks) < 50
    assert no_query_left(long_url)


def test_an_error_while_blocks_are_taken_ends_the_query_too(long_url):
    def full(block, rows):
        raise StopError

    long = dataset(LONG, columns=("id", "text"))
    with pytest.raises(StopError), opened(long_url) as source:
        source.copy_csv(request(long), Dialect(), full)
    assert no_query_left(long_url)


def test_the_operator_can_see_which_export_runs(source_url):
    with opened(source_url), psycopg.connect(source_url, autocommit=True) as other:
        names = other.execute("SELECT application_name FROM pg_stat_activity").fetchall()
    assert ("tenure export test 1",) in names


def test_a_connection_that_breaks_means_try_again(long_url):
    def kill(block, rows):
        execute(
            long_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tenure export%'",
        )

    long = dataset(LONG, columns=("id", "text"))
    with opened(long_url) as source, pytest.raises(SourceUnavailableError, match='"orders"') as caught:
        source.copy_csv(request(long), Dialect(), kill)
    assert caught.value.retryable
    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_somebody_else_s_cancel_says_so(long_url):
    def cancel(block, rows):
        execute(
            long_url,
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tenure export%'",
        )

    long = dataset(LONG, columns=("id", "text"))
    with opened(long_url) as source, pytest.raises(QueryTimeoutError, match="cancelled on its server after"):
        source.copy_csv(request(long), Dialect(), cancel)


def test_an_unreachable_source_means_try_again(source_url):
    with pytest.raises(SourceUnavailableError, match="cannot be reached") as caught:
        opened(make_conninfo(source_url, port=1))
    assert caught.value.retryable
    assert caught.value.phase == "plan"


def test_a_broken_url_is_not_repeated_anywhere(source_url):
    with pytest.raises(SourceUnavailableError) as caught:
        opened("postgresql://reader:s3cret@[::1/shop")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_refused_query_names_the_fault_and_no_row_s_value(source_url):
    unknown = dataset("SELECT * FROM no_such_table")
    with opened(source_url) as source, pytest.raises(SourceQueryError, match=r"42P01.*no_such_table"):
        source.columns(unknown)
    execute(source_url, "CREATE TABLE t (tenant text, id text)", "INSERT INTO t VALUES ('acme', 'private')")
    failing = dataset("SELECT tenant, id::int AS id FROM t")
    with opened(source_url) as source, pytest.raises(SourceQueryError, match="22P02") as caught:
        source.copy_csv(request(failing), Dialect(), ignore)
    assert "private" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_both_reads_see_one_view_whatever_is_committed_between(source_url):
    execute(source_url, "CREATE TABLE t (id int, tenant text)", "INSERT INTO t VALUES (1, 'acme'), (2, 'acme')")
    asked = request(dataset("SELECT * FROM t"))
    found = bytearray()
    with opened(source_url) as source:
        assert source.count(asked) == 2
        execute(source_url, "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3, 'acme'), (4, 'acme')")
        assert source.copy_csv(asked, Dialect(), lambda block, _: found.extend(block)) == 2
    assert found == b"1\n2\n"


def test_blocks_end_where_the_rows_do_and_not_where_the_network_does(source_url):
    query = "SELECT i AS id, 'acme'::text AS tenant, repeat('x', 700) AS text FROM generate_series(1, 6000) i"
    sizes = []
    for _ in range(2):
        blocks = []
        with opened(source_url) as source:
            source.copy_csv(
                request(dataset(query, columns=("id", "text"))),
                Dialect(),
                lambda block, rows, blocks=blocks: blocks.append((len(block), rows, bytes(block[-1:]))),
            )
        sizes.append(blocks)
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) > 3
    assert all(end == b"\n" and 1_048_576 <= size < 1_049_600 for size, _, end in sizes[0][:-1])
    assert sum(rows for _, rows, _ in sizes[0]) == 6000
