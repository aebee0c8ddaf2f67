import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tenure.cli.simulate import simulate
from tenure.core.errors import InvalidInputError
from tenure.simulate import scenarios

LOAD = """
duration_seconds = 600
[queue]
slots = 4
[[tenants]]
name = "big <&>"
arrivals = { kind = "burst", jobs = 600 }
durations = { kind = "constant", seconds = 5 }
[[tenants]]
name = "small"
count = 3
arrivals = { kind = "steady", every_seconds = 60 }
durations = { kind = "constant", seconds = 5 }
"""


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "load.toml"
    path.write_text(LOAD, "utf-8")
    return str(path)


def run(*words):
    return CliRunner().invoke(simulate, words)


def test_waits_and_shares_are_printed_for_both_policies(load):
    done = run(load, "--compare", "fifo")

    assert done.exit_code == 0, done.output
    for words in ("big <&>", "3 small", "fair shares", "first in, first out", "slots in use"):
        assert words in done.output


def test_json_holds_everything(load):
    done = run(load, "--json", "--compare", "fifo")

    answer = json.loads(done.stdout)
    assert ["fair", "fifo"] == [summary["policy"] for summary in answer["policies"]]
    assert ["big <&>", "small"] == [group["name"] for group in answer["policies"][0]["groups"]]
    assert answer["policies"][0]["groups"][1]["waits"]["max"] <= 5 < answer["policies"][1]["groups"][1]["waits"]["max"]


def test_the_chart_is_well_formed_and_has_a_column_for_each_policy(load, tmp_path):
    done = run(load, "--chart", str(tmp_path / "out.svg"), "--compare", "fifo")

    assert done.exit_code == 0, done.output
    texts = [element.text for element in ET.parse(tmp_path / "out.svg").iter() if element.text]
    assert "Slots held, fair shares" in texts
    assert "Slots held, first in, first out" in texts
    assert "big <&>" in texts


def test_the_scenarios_are_listed_with_what_they_show():
    done = run("--scenario", "list")

    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == scenarios.names()


@pytest.mark.parametrize("words", [(), ("--scenario", "nope"), ("nowhere.toml",)])
def test_a_wrong_call_is_refused_with_2(words):
    assert 2 == run(*words).exit_code


def test_a_wrong_load_names_its_fields(tmp_path):
    path = tmp_path / "load.toml"
    path.write_text("duration_seconds = 0", "utf-8")
    done = run(str(path))

    assert isinstance(done.exception, InvalidInputError)
    assert {"duration_seconds", "queue.slots", "tenants"} <= {item.pointer for item in done.exception.problems}
