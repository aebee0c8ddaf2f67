"""The habits of the tree that a linter does not know."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository_files import PRODUCT, ROOT, modules, repository_files, shown, text_files, tree, within

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6

READS_ENVIRONMENT = {
    "cli/": "hands it to the settings, and to the processes it starts",
    "wiring/assemble.py": "a child process reads its settings for itself",
    "wiring/embedded/account.py": "PostgreSQL's own processes get a few variables and no others",
}
READS_WALL_CLOCK = {
    "cli/": "shows people the time",
    "wiring/assemble.py": "signed links and message timestamps; nothing stored or judged comes from it",
    "transports/egress.py": "Retry-After may be a date",
}
HOLDS_SQL = {
    "sources/": "reads other people's databases",
    "store/migrate.py": "runs the migrations",
    "exports/catalogue.py": "turns a declared table into the dataset's query",
    "cli/demo/": "compares a file with the sample product it came from",
    "cli/sample/": "makes the sample product, which is not Tenure's database",
    "wiring/embedded/": "makes role and database of a server of its own",
}
SQL_FILES = ("store/sql/", "store/migrations/", "cli/sample/")
WALL_CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns"}
SQL_TEXT = re.compile(
    r"\s*(SELECT\s|INSERT INTO\s|UPDATE\s+[\w.]+\s+SET\s|DELETE FROM\s|WITH\s+\w+\s+AS\s|"
    r"(CREATE|ALTER|DROP)\s+[A-Z]+\s)"
)
# Written in two halves, so that this file does not find itself.
MARKS = re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b")
WORKPLACE = re.compile("(?<![A-Za-z0-9_.-])/wo" + "rk/|bash" + "_jobs|/home/" + r"[a-z]+/|index-" + "url")


def functions(module: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def every_module() -> list[Path]:
    return [path for path in repository_files() if path.suffix == ".py"]


def allowed(module: Path, places: dict[str, str]) -> bool:
    path = within(module)
    return any(path.startswith(place) if place.endswith("/") else path == place for place in places)


def dotted(node: ast.expr) -> str:
    """`datetime.now` of `datetime.now(UTC)` or `datetime.datetime.now`: the last two names."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names += [node.id] if isinstance(node, ast.Name) else []
    return ".".join(reversed(names[:2]))


def test_no_file_is_too_long_to_read_in_one_sitting():
    lines = {shown(path): len(path.read_text("utf-8").splitlines()) for path in every_module()}

    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_no_function_is_too_long_to_see_at_once():
    lines = {
        f"{shown(path)}:{function.lineno} {function.name}": function.end_lineno - function.lineno + 1
        for path in every_module()
        for function in functions(path)
    }

    assert {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX} == {}


def test_no_function_takes_too_many_parameters():
    found = {}
    for path in modules():
        for function in functions(path):
            given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            count = len([item for item in given if item.arg not in {"self", "cls"}])
            if count > PARAMETERS_MAX:
                found[f"{shown(path)}:{function.lineno} {function.name}"] = count

    assert found == {}


def test_every_module_says_what_it_is_for():
    assert [shown(path) for path in modules() if not (ast.get_docstring(tree(path)) or "").strip()] == []


def test_no_module_is_named_for_nothing_in_particular():
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}

    assert [shown(path) for path in every_module() if path.stem in vague] == []


def test_the_environment_is_read_where_settings_are():
    readers = {
        path
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and dotted(node) in {"os.environ", "os.getenv", "os.environb"}
    }

    assert sorted(shown(path) for path in readers if not allowed(path, READS_ENVIRONMENT)) == []


def test_no_decision_is_made_by_a_wall_clock():
    readers = {
        path
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and dotted(node) in WALL_CLOCKS
    }

    assert sorted(shown(path) for path in readers if not allowed(path, READS_WALL_CLOCK)) == []


def test_sql_is_written_where_sql_lives():
    holders = {
        path
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL_TEXT.match(node.value)
    }
    files = [path for path in repository_files() if path.suffix == ".sql" and path.is_relative_to(PRODUCT)]

    assert sorted(shown(path) for path in holders if not allowed(path, HOLDS_SQL)) == []
    assert [shown(path) for path in files if not within(path).startswith(SQL_FILES)] == []


@pytest.mark.parametrize("places", [READS_ENVIRONMENT, READS_WALL_CLOCK, HOLDS_SQL])
def test_every_exception_is_for_a_place_that_exists(places):
    assert [place for place in places if not (PRODUCT / place).exists()] == []


def test_open_work_is_an_issue_and_not_a_mark_in_the_code():
    assert [path for path, text in text_files() if MARKS.search(text)] == []


def test_the_repository_speaks_of_the_product_alone():
    assert [path for path, text in text_files() if WORKPLACE.search(text)] == []


def test_names_of_test_files_are_unique():
    """Tests are no package: pytest imports them by their bare name."""
    names = Counter(path.name for path in every_module() if path.is_relative_to(ROOT / "tests"))
    del names["conftest.py"]

    assert [name for name, count in names.items() if count > 1] == []
