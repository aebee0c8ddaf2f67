"""The benchmarks' own arithmetic: a wrong ruler is worse than none."""

from xml.etree import ElementTree as ET

import pytest
from reports import bar_chart, percentile, rates
from systems import HERE, TENURE, at_work, run_side
from tally import Tally


def test_a_percentile_is_a_value_that_was_measured():
    assert [1.0, 2.0, 4.0, 4.0] == [percentile([4.0, 1.0, 3.0, 2.0], share) for share in (0.0, 0.5, 0.99, 1.0)]


def test_rates_leave_the_warm_up_out_and_count_every_interval_once():
    slow_start = [number * 1.0 for number in range(5)]
    instants = slow_start + [5 + number * 0.1 for number in range(95)]

    assert [pytest.approx(10.0)] * 3 == rates(instants, 3)


def test_a_tally_is_read_while_it_is_written(tmp_path):
    written = Tally(tmp_path / "tally", capacity=2)
    read = Tally(tmp_path / "tally")
    counts = [written.mark() for _ in range(3)]

    assert [1, 2, 3] == counts
    assert (3, 2) == (read.count(), len(read.instants()))


def test_a_chart_is_well_formed_whatever_names_hold():
    chart = ET.fromstring(bar_chart("<&>", [("a & b", [("x", 2.0, "2 < 3"), ("y", 0.0, "none")])]))

    assert chart.tag.endswith("svg")
    assert len(chart.findall(".//{*}rect")) == 3


def test_every_job_of_a_small_drain_is_done_once(database_url):
    run_side(TENURE, "setup", database_url)
    run_side(TENURE, "fill", database_url, "--jobs", "40", "--tenants", "4")
    with at_work(TENURE, database_url, capacity=40) as workers:
        workers.wait_done(40)

    assert 40 == workers.done()


@pytest.mark.parametrize("peer", ["pgqueuer", "procrastinate"])
def test_versions_of_peers_are_pinned(peer):
    lines = (HERE / "peers" / f"{peer}.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert any(line.startswith(f"{peer}==") for line in pins)
    assert [line for line in pins if "==" not in line] == []
