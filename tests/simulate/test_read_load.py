"""Loads are read strictly: everything that is wrong is named at once."""

import re
from pathlib import Path

import pytest

from tenure.core.errors import InvalidInputError
from tenure.simulate import scenarios
from tenure.simulate.load import UNLIMITED, DurationKind
from tenure.simulate.read import load_from, read_load

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "simulate.md"
GOOD = {
    "duration_seconds": 60,
    "queue": {"slots": 2},
    "tenants": [
        {"name": "a", "arrivals": {"kind": "burst", "jobs": 3}, "durations": {"kind": "constant", "seconds": 1}}
    ],
}


def problems(document):
    with pytest.raises(InvalidInputError) as raised:
        load_from(document, "test.toml")
    return {problem.pointer: problem.detail for problem in raised.value.problems}


def tenant(**facts):
    return {**GOOD, "tenants": [{**GOOD["tenants"][0], **facts}]}


def test_what_is_left_out_has_the_defaults_of_the_store():
    load = load_from(GOOD, "folder/test.toml")

    assert load.name == "test"
    assert load.headroom == 0
    assert load.first_estimate_seconds == 1.0
    (group,) = load.groups
    assert (group.count, group.weight, group.cap, group.ceiling) == (1, 1.0, UNLIMITED, UNLIMITED)


def test_everything_wrong_is_named_at_once():
    found = problems(
        {
            "duration_seconds": "an hour",
            "slots": 3,
            "queue": {"headroom": -1},
            "tenants": [
                {"weight": 0, "arrivals": {"kind": "brust"}, "durations": {"kind": "uniform", "high_seconds": 5}},
                {"name": "b", "arrivals": [{"kind": "steady"}], "crash_rate": 2},
            ],
        }
    )

    assert set(found) >= {
        "duration_seconds",
        "slots",
        "queue.slots",
        "queue.headroom",
        "tenants[0].name",
        "tenants[0].weight",
        "tenants[0].arrivals.kind",
        "tenants[0].durations.low_seconds",
        "tenants[1].arrivals[0].every_seconds",
        "tenants[1].arrivals[0].durations",
        "tenants[1].crash_rate",
    }
    assert 'Did you mean "burst"?' in found["tenants[0].arrivals.kind"]


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({}, "tenants"),
        ({**GOOD, "tenants": []}, "tenants"),
        ({**GOOD, "tenants": GOOD["tenants"] * 2}, "tenants[1].name"),
        ({**GOOD, "queue": {"slots": 2, "headroom": 3}}, "queue.headroom"),
        (tenant(count=2_000_000, arrivals={"kind": "burst", "jobs": 100}), "tenants"),
        (tenant(paused=[[5, 1]]), "tenants[0].paused[0]"),
        (tenant(paused=[[1, 5], [0, 9]]), "tenants[0].paused[1]"),
        (tenant(paused=[[1, 5], [4, 9]]), "tenants[0].paused[1]"),
        (tenant(arrivals=None), "tenants[0].arrivals"),
        (tenant(arrivals=[]), "tenants[0].arrivals"),
        (tenant(arrivals={"kind": "burst", "jobs": 1, "at_seconds": 61}), "tenants[0].arrivals.at_seconds"),
        (tenant(arrivals={"kind": "burst", "jobs": 1, "rate_per_hour": 1}), "tenants[0].arrivals.rate_per_hour"),
        (tenant(durations={"kind": "lognormal", "seconds": 4}), "tenants[0].durations.median_seconds"),
        (tenant(durations={"kind": "constant", "seconds": float("nan")}), "tenants[0].durations.seconds"),
    ],
)
def test_one_wrong_field_is_named(document, pointer):
    assert pointer in problems(document)


def test_arrivals_may_bring_durations_of_their_own():
    streams = [
        {"kind": "burst", "jobs": 1},
        {"kind": "burst", "jobs": 1, "durations": {"kind": "exponential", "mean_seconds": 3}},
    ]
    (group,) = load_from(tenant(arrivals=streams), "test").groups

    assert [DurationKind.CONSTANT, DurationKind.EXPONENTIAL] == [work.durations.kind for work in group.work]


def test_what_is_not_toml_says_where():
    with pytest.raises(InvalidInputError, match=r"load\.toml: is not TOML: .*line 2"):
        read_load("seed = 1\nslots 3", "load.toml")


@pytest.mark.parametrize("name", scenarios.names())
def test_every_scenario_is_accepted_and_says_what_it_shows(name):
    load = scenarios.load_of(name)

    assert load.name
    assert load.description


def test_the_loads_in_the_guide_are_accepted():
    blocks = re.findall(r"^```ini\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)

    assert blocks
    for block in blocks:
        read_load(block, "guide")
