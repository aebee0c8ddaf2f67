"""Reads a load from TOML, strictly: every wrong field is named at once."""

import tomllib
from collections.abc import Mapping
from pathlib import PurePath

from tenure.core.errors import FieldProblem, InvalidInputError
from tenure.core.fields import Problems, Table, dotted_name, shown
from tenure.core.limits import CRASHES_MAX_DEFAULT
from tenure.simulate.load import (
    FIRST_ESTIMATE_SECONDS,
    UNLIMITED,
    ArrivalKind,
    Arrivals,
    DurationKind,
    Durations,
    Group,
    Load,
    Work,
)

SECONDS_MAX = 366 * 86_400.0
RUN_SECONDS_MIN = 0.001
TENANTS_MAX = 2_000_000
JOBS_MAX = 10_000_000
"""A job takes some 50 bytes and 10 microseconds."""
SLOTS_MAX = 1_000_000
GROUPS_MAX = 100


def read_load(text: str, name: str) -> Load:
    """Raises InvalidInputError with every problem found. `name` stands in for a load without a name of its own."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(FieldProblem(pointer=name, detail=f"is not TOML: {error}")) from None
    return load_from(document, name)


def load_from(document: Mapping[str, object], name: str) -> Load:
    """The load that a decoded TOML document describes."""
    problems = Problems(dotted_name)
    table = Table(document, (), problems)
    duration_seconds = _needed_number(table, "duration_seconds", low=1, high=SECONDS_MAX)
    queue = table.table("queue")
    load = Load(
        name=table.text("name", PurePath(name).stem),
        description=table.text("description", ""),
        seed=table.whole("seed", 1, low=0, high=2**63 - 1),
        duration_seconds=duration_seconds,
        drain=table.flag("drain", default=True),
        slots=_needed_whole(queue, "slots", low=1, high=SLOTS_MAX),
        headroom=queue.whole("headroom", 0, low=0, high=SLOTS_MAX),
        first_estimate_seconds=queue.number(
            "first_estimate_seconds", FIRST_ESTIMATE_SECONDS, low=RUN_SECONDS_MIN, high=3_600
        ),
        groups=_groups(table, duration_seconds),
    )
    table.refuse_unknown()
    queue.refuse_unknown()
    if not problems.found():
        _check_sizes(load, problems)
    if found := problems.found():
        raise InvalidInputError(*found)
    return load


def _check_sizes(load: Load, problems: Problems) -> None:
    if load.headroom > load.slots:
        problems.note(("queue", "headroom"), f"must not be more than queue.slots, {load.slots}")
    if load.tenant_count > TENANTS_MAX:
        problems.note(("tenants",), f"are {load.tenant_count:,} in all, at most {TENANTS_MAX:,} can be simulated")
    jobs = sum(group.count * work.arrivals.expected_jobs() for group in load.groups for work in group.work)
    if jobs > JOBS_MAX:
        problems.note(("tenants",), f"ask for about {jobs:,.0f} jobs, at most {JOBS_MAX:,} can be simulated")


def _groups(table: Table, duration_seconds: float) -> tuple[Group, ...]:
    items = table.items("tenants")
    if not 1 <= len(items) <= GROUPS_MAX:
        table.note("tenants", f"must be 1 to {GROUPS_MAX} groups, [[tenants]], not {len(items)}")
        return ()
    groups = [
        _group(Table(item, ("tenants", index), table.problems), duration_seconds) for index, item in enumerate(items)
    ]
    names = [group.name for group in groups]
    for index, group in enumerate(groups):
        if group.name and group.name in names[:index]:
            table.problems.note(("tenants", index, "name"), f"{shown(group.name)} is the name of an earlier group")
    return tuple(groups)


def _group(table: Table, duration_seconds: float) -> Group:
    group = Group(
        name=table.required_text("name"),
        count=table.whole("count", 1, low=1, high=TENANTS_MAX),
        weight=table.number("weight", 1.0, low=0.001, high=1_000_000),
        cap=table.whole("cap", UNLIMITED, low=0, high=UNLIMITED),
        ceiling=table.whole("ceiling", UNLIMITED, low=0, high=UNLIMITED),
        work=_work(table, duration_seconds),
        crash_rate=table.number("crash_rate", 0.0, low=0, high=1),
        max_crashes=table.whole("max_crashes", CRASHES_MAX_DEFAULT, low=1, high=100),
        paused=_spells(table),
    )
    table.refuse_unknown()
    return group


def _work(table: Table, duration_seconds: float) -> tuple[Work, ...]:
    """`arrivals` is one table or a list of them; each may bring `durations` of its own."""
    usual = _durations(table.table("durations")) if table.has("durations") else None
    if not table.has("arrivals"):
        table.note("arrivals", "is required")
        return ()
    if isinstance(table.raw("arrivals"), dict):
        return (_stream(table.table("arrivals"), usual, duration_seconds),)
    items = table.items("arrivals")
    if not items:
        table.note("arrivals", "must be a table or a list of tables, not empty")
    return tuple(
        _stream(Table(item, (*table.path, "arrivals", index), table.problems), usual, duration_seconds)
        for index, item in enumerate(items)
    )


def _stream(table: Table, usual: Durations | None, duration_seconds: float) -> Work:
    own = _durations(table.table("durations")) if table.has("durations") else None
    if own is None and usual is None:
        table.note("durations", "is required, here or for the whole group")
    arrivals = _arrivals(table, duration_seconds)
    table.refuse_unknown()
    return Work(arrivals=arrivals, durations=own or usual or Durations(kind=DurationKind.CONSTANT, seconds=1.0))


def _arrivals(table: Table, duration_seconds: float) -> Arrivals:
    kind = table.choice("kind", ArrivalKind.POISSON)
    if kind is ArrivalKind.BURST:
        return Arrivals(
            kind=kind,
            jobs=_needed_whole(table, "jobs", low=1, high=JOBS_MAX),
            from_seconds=table.number("at_seconds", 0.0, low=0, high=duration_seconds),
        )
    from_seconds = table.number("from_seconds", 0.0, low=0, high=duration_seconds)
    to_seconds = table.number("to_seconds", duration_seconds, low=from_seconds, high=duration_seconds)
    if kind is ArrivalKind.STEADY:
        every_seconds = _needed_number(table, "every_seconds", low=RUN_SECONDS_MIN, high=SECONDS_MAX)
        return Arrivals(kind=kind, every_seconds=every_seconds, from_seconds=from_seconds, to_seconds=to_seconds)
    rate_per_hour = _needed_number(table, "rate_per_hour", low=0, high=3_600_000)
    return Arrivals(kind=kind, rate_per_hour=rate_per_hour, from_seconds=from_seconds, to_seconds=to_seconds)


_DURATION_FIELDS = {
    DurationKind.CONSTANT: "seconds",
    DurationKind.UNIFORM: "high_seconds",
    DurationKind.EXPONENTIAL: "mean_seconds",
    DurationKind.LOGNORMAL: "median_seconds",
}


def _durations(table: Table) -> Durations:
    kind = table.choice("kind", DurationKind.CONSTANT)
    seconds = _needed_number(table, _DURATION_FIELDS[kind], low=RUN_SECONDS_MIN, high=SECONDS_MAX)
    low_seconds = sigma = 0.0
    if kind is DurationKind.UNIFORM:
        low_seconds = _needed_number(table, "low_seconds", low=RUN_SECONDS_MIN, high=seconds)
    if kind is DurationKind.LOGNORMAL:
        sigma = table.number("sigma", 1.0, low=0, high=5)
    table.refuse_unknown()
    return Durations(kind=kind, seconds=seconds, low_seconds=low_seconds, sigma=sigma)


def _spells(table: Table) -> tuple[tuple[float, float], ...]:
    spells: list[tuple[float, float]] = []
    since = 0.0
    for index, item in enumerate(table.items("paused")):
        match item:
            case [int() | float() as start, int() | float() as end] if since <= start < end:
                spells.append((float(start), float(end)))
                since = end
            case _:
                path = (*table.path, "paused", index)
                table.problems.note(path, "must be [from, to] in seconds, from before to, after the spell before it")
    return tuple(spells)


def _needed_number(table: Table, name: str, *, low: float, high: float) -> float:
    """A number that has no default; a missing one is noted and answered with the largest."""
    if not table.has(name):
        table.note(name, "is required")
    return table.number(name, high, low=low, high=high)


def _needed_whole(table: Table, name: str, *, low: int, high: int) -> int:
    if not table.has(name):
        table.note(name, "is required")
    return table.whole(name, low, low=low, high=high)
