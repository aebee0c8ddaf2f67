"""One statement, one file, one function: what a reviewer sees is what runs."""

import ast
import re
from collections import defaultdict

from repository_files import PRODUCT, modules, repository_files, tree

SQL = PRODUCT / "store" / "sql"
HEADER_LINES_MAX = 3
HOMES = {"packages": "exports", "schema": "migrate"}
"""Nouns that live in another noun's module."""
STEPS = {
    "doorbells/probe": "asked by `listen` while it is quiet",
    "lanes/fold": "the second step of a claim, and of a check of the lanes",
    "queues/lock": "the first step of a claim; also taken alone, by housekeeping",
    "queues/settle_floor": "the last step of a claim",
}
"""Statements that are one step of a function named after something else."""


def statement_files():
    return {
        path.relative_to(SQL).with_suffix("").as_posix(): path.read_text("utf-8")
        for path in repository_files()
        if path.suffix == ".sql" and path.is_relative_to(SQL)
    }


def statement_uses():
    """Name of a statement -> the functions of the store that run it, as `module.function`."""
    uses = defaultdict(list)
    for path in modules():
        for function in ast.walk(tree(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "statement":
                        uses[ast.literal_eval(call.args[0])].append(f"{path.stem}.{function.name}")
    return uses


def test_every_statement_is_run_and_every_one_that_is_run_exists():
    assert sorted(statement_files()) == sorted(statement_uses())


def test_every_statement_is_run_by_one_function():
    uses = {name: found for name, found in statement_uses().items() if name not in STEPS}

    assert {name: found for name, found in uses.items() if len(found) > 1} == {}


def test_the_function_is_named_after_its_statement():
    strangers = {}
    for name, found in statement_uses().items():
        noun, verb = name.split("/")
        home = HOMES.get(noun, noun)
        expected = home if noun == "schema" else f"{home}.{verb}"
        if name not in STEPS and not found[0].replace("._", ".").startswith(expected):
            strangers[name] = found

    assert strangers == {}


def test_every_statement_says_what_it_does_in_at_most_three_lines():
    wrong = []
    for name, text in statement_files().items():
        lines = text.splitlines()
        header = next(index for index, line in enumerate(lines) if not line.startswith("--"))
        if not text.startswith(f"-- {name.split('/')[1]}: ") or header > HEADER_LINES_MAX:
            wrong.append(name)

    assert wrong == []


def test_every_table_is_named_with_its_schema():
    """Connections have no search path worth trusting: a bare name could be anybody's table."""
    migrations = [path.read_text("utf-8") for path in sorted((PRODUCT / "store" / "migrations").glob("*.sql"))]
    tables = {name for text in migrations for name in re.findall(r"^CREATE TABLE tenure\.(\w+)", text, re.MULTILINE)}
    bare = {
        f"{name}: {keyword} {table}"
        for name, text in statement_files().items()
        for table in tables
        for keyword in ("FROM", "JOIN", "INTO", "UPDATE")
        if f"{keyword} {table} " in text.replace("\n", " ")
    }

    assert set() == bare


def test_only_steps_and_homes_that_are_needed_are_excepted():
    assert set(STEPS) <= set(statement_files())
    assert set(HOMES) <= {name.split("/")[0] for name in statement_files()}
