"""What the policy promises, seen over hours of simulated load and beside a plain queue."""

import pytest

from tenure.simulate import scenarios
from tenure.simulate.compare import PolicyName, simulate
from tenure.simulate.read import load_from

BOTH = (PolicyName.FAIR, PolicyName.FIFO)


def constant(seconds):
    return {"kind": "constant", "seconds": seconds}


def burst(jobs, at_seconds=0, **facts):
    return {"kind": "burst", "jobs": jobs, "at_seconds": at_seconds, **facts}


def played(*tenants, slots=10, duration_seconds=3600, **facts):
    queue = {"slots": slots, **facts.pop("queue", {})}
    document = {"queue": queue, "duration_seconds": duration_seconds, "drain": False, "tenants": list(tenants), **facts}
    return next(simulate(load_from(document, "test")))


def groups(summary):
    return {group.name: group for group in summary.groups}


def slots_between(summary, name, start, end):
    """Mean slots of a group between two times."""
    column = [group.name for group in summary.groups].index(name)
    rows = summary.slots_held[int(start / summary.bin_seconds) : int(end / summary.bin_seconds)]
    return sum(row[column] for row in rows) / len(rows)


def test_weights_hold_though_the_jobs_of_one_are_ten_times_as_long():
    fair, fifo = simulate(scenarios.load_of("weights-1-2-4"), BOTH)

    assert fair.jain >= 0.99
    assert fair.jain_tenants == 3
    assert [1 / 7, 2 / 7, 4 / 7] == pytest.approx([group.part for group in fair.groups], rel=0.01)
    assert fifo.jain < 0.5


def test_small_tenants_do_not_wait_for_the_backlog_of_a_big_one():
    fair, fifo = simulate(scenarios.load_of("big-tenant-and-small-ones"), BOTH)

    assert groups(fair)["small"].waits.max < 30
    assert groups(fifo)["small"].waits.max > 3_600
    assert fair.alone_wait_max <= fair.alone_wait_bound


def test_a_crashing_tenant_pays_for_its_crashes():
    fair = next(simulate(scenarios.load_of("crashes")))

    steady, crashing = fair.groups
    assert crashing.crashes > 500
    assert steady.worker_seconds == pytest.approx(crashing.worker_seconds, rel=0.02)
    assert fair.jain >= 0.99


def test_a_job_that_dies_every_time_is_quarantined_and_not_counted_for_ever():
    summary = played({"name": "doomed", "crash_rate": 1.0, "arrivals": burst(5), "durations": constant(10)}, drain=True)

    assert summary.quarantined == 5
    assert summary.crashes == 15
    assert summary.unfinished == 0


def test_idling_saves_nothing_up():
    """Who comes after half an hour gets half of the slots from then on, not all of them until it is even."""
    summary = played(
        {"name": "early", "arrivals": burst(9_000), "durations": constant(10)},
        {"name": "late", "arrivals": burst(9_000, at_seconds=1_800), "durations": constant(10)},
    )

    assert 10.0 == slots_between(summary, "early", 0, 1_800)
    assert 5.0 == pytest.approx(slots_between(summary, "late", 1_860, 3_600), abs=0.2)


def test_a_pause_saves_nothing_up():
    work = {"arrivals": burst(9_000), "durations": constant(10)}
    summary = played({"name": "paused", "paused": [[60, 1_800]], **work}, {"name": "other", **work})

    assert 0.0 == slots_between(summary, "paused", 90, 1_800)
    assert 5.0 == pytest.approx(slots_between(summary, "paused", 1_860, 3_600), abs=0.2)


def test_caps_flex_while_others_are_away_and_who_returns_gets_the_next_free_slot():
    summary = next(simulate(scenarios.load_of("caps-and-lending")))

    assert slots_between(summary, "capped", 300, 1_200) > 12
    assert slots_between(summary, "capped", 1_500, 2_700) < 4.5
    assert summary.alone_wait_max < 30  # the longest run: a slot is free by then, and it is theirs
    assert summary.idle_while_waiting == 0


def test_headroom_is_never_lent():
    work = {"arrivals": burst(9_000), "durations": constant(10)}
    summary = played({"name": "capped", "cap": 2, **work}, queue={"headroom": 3})

    assert 7.0 == slots_between(summary, "capped", 60, 3_600)


def test_a_ceiling_is_never_passed():
    summary = played({"name": "strict", "cap": 2, "ceiling": 4, "arrivals": burst(9_000), "durations": constant(10)})

    assert 4.0 == pytest.approx(slots_between(summary, "strict", 0, 3_600))


def test_an_estimate_far_too_high_does_not_hold_back_who_comes_meanwhile():
    """The lane charged an hour for each job; it came out at a second. The other one woke in between."""
    long, short = constant(3_600), constant(1)
    summary = played(
        {"name": "was long", "arrivals": [burst(20, durations=long), burst(90_000, 7_300, durations=short)]},
        {"name": "woke", "arrivals": burst(90_000, 7_300.5), "durations": short},
        duration_seconds=9_000,
    )

    assert summary.alone_wait_max < 10
    assert 5.0 == pytest.approx(slots_between(summary, "woke", 7_400, 9_000), abs=0.3)


@pytest.mark.parametrize("name", ["weights-1-2-4", "big-tenant-and-small-ones", "crashes", "caps-and-lending"])
def test_no_slot_idles_while_work_is_eligible(name):
    assert next(simulate(scenarios.load_of(name))).idle_while_waiting == 0


def test_used_and_due_are_equal_in_sum():
    summary = next(simulate(scenarios.load_of("caps-and-lending")))

    used, due = (sum(getattr(group, name) for group in summary.groups) for name in ("used_seconds", "due_seconds"))
    assert used == pytest.approx(due)


def test_the_same_seed_gives_the_same_result():
    load = scenarios.load_of("caps-and-lending")

    assert next(simulate(load)) == next(simulate(load))


def test_another_seed_gives_another_result():
    work = {"arrivals": {"kind": "poisson", "rate_per_hour": 500}, "durations": {"mean_seconds": 9}}
    work["durations"]["kind"] = "exponential"

    assert played({"name": "a", **work}, seed=1) != played({"name": "a", **work}, seed=2)


def test_jobs_are_the_same_for_every_policy():
    fair, fifo = simulate(scenarios.load_of("big-tenant-and-small-ones"), BOTH)

    assert fair.jobs == fifo.jobs
    assert fair.ended_at == pytest.approx(fifo.ended_at, rel=0.01)


def test_arrivals_come_at_the_rate_asked_for():
    times = {"from_seconds": 600, "to_seconds": 3_000}
    summary = played(
        {
            "name": "poisson",
            "count": 4,
            "arrivals": {"kind": "poisson", "rate_per_hour": 900, **times},
            "durations": constant(1),
        },
        {
            "name": "steady",
            "count": 3,
            "arrivals": {"kind": "steady", "every_seconds": 60, **times},
            "durations": constant(1),
        },
    )

    assert 4 * 600 == pytest.approx(groups(summary)["poisson"].jobs, rel=0.1)
    assert 3 * 40 == groups(summary)["steady"].jobs
