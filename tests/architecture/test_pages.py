"""Pages tell the truth: generated parts are current, links lead somewhere, commands and examples are accepted."""

import ast
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from uuid import UUID

import click
import pytest
from repository_files import DOCS, PRODUCT, README, ROOT, modules, pages, shown, tree

from tenure.cli.main import tenure as command_line
from tenure.exports.catalogue import read_catalogue
from tenure.exports.request import read_request
from tenure.wiring.settings import Settings

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"(<!--[^\n]*-->\n)?\n?^([ ]*)```(\w+)\n(.*?)^[ ]*```", re.DOTALL | re.MULTILINE)
UNTESTED = "no test"
SAMPLE = PRODUCT / "cli" / "sample" / "sample.toml"
ENVIRON = {
    "PATH": os.environ.get("PATH", ""),
    "SHOP_DATABASE_URL": "postgresql://h/d",
    "PRODUCT_DATABASE_URL": "postgresql://h/d",
}
"""Enough for settings and for `make -n`; nothing of the surrounding make, which would hand down its own flags."""
DECISION_PARTS = ["Context", "Decision", "Consequences", "Rejected", "Revisit when"]


def blocks(page, language):
    """(comment before it, text) of every fenced block of a language."""
    found = FENCE.findall(page.read_text("utf-8"))
    return [(comment.strip(), textwrap.dedent(text)) for comment, _, kind, text in found if kind == language]


def commands(page):
    """(is it to be tried, words) of every command line in the page's shell blocks."""
    for comment, text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield UNTESTED not in comment, words


def every_command(program):
    return sorted({tuple(words) for page in pages() for _, words in commands(page) if Path(words[0]).name == program})


def anchors(page):
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_generated_parts_are_what_the_code_says():
    command = [sys.executable, DOCS / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.stderr == ""
    assert done.returncode == 0


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in pages():
        for link in LINK.findall(page.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" in link or link.startswith("mailto:"):
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{shown(page)}: {link}")

    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            links = [link.partition("#")[0] for link in LINK.findall(page.read_text("utf-8"))]
            waiting += [target for link in links if link and (target := (page.parent / link).resolve()).is_file()]

    assert [
        shown(page) for page in pages() if page.is_relative_to(DOCS) and page not in reached | {DOCS / "README.md"}
    ] == []


@pytest.mark.parametrize("words", every_command("make"), ids=" ".join)
def test_make_knows_the_commands_that_pages_name(words):
    done = subprocess.run(
        ["make", "-n", *words[1:]], cwd=ROOT, env=ENVIRON, capture_output=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", every_command("tenure"), ids=" ".join)
def test_the_command_line_knows_the_commands_that_pages_name(words):
    """Every word is a command or an option that exists; nothing is run."""
    command, rest = command_line, list(words[1:])
    while isinstance(command, click.Group) and rest:
        name = rest.pop(0)
        command = command.get_command(click.Context(command), name)
        assert command is not None, name
    stand_ins = {"JOB_ID": str(UUID(int=0)), "my-package/": str(PRODUCT)}
    command.make_context("tenure", [stand_ins.get(word, word) for word in rest])


def test_the_readme_is_tried_by_somebody():
    """Commands that need no server are checked above; those excepted say why."""
    tried = [words for page in (README, DOCS / "start.md") for is_tried, words in commands(page) if is_tried]

    assert ["make", "demo"] in tried
    assert ["make", "test"] in tried


def test_the_sample_settings_are_accepted():
    command = [sys.executable, "-m", "tenure.cli.main", "config", "check", "--config", SAMPLE]
    done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok: ")


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page, "toml")], ids=shown)
def test_settings_in_pages_are_accepted(page, tmp_path):
    for _, text in blocks(page, "toml"):
        path = tmp_path / "tenure.toml"
        path.write_text(text, "utf-8")

        Settings.load(path, ENVIRON, {})


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page, "json")], ids=shown)
def test_requests_in_pages_are_accepted(page):
    declared = tomllib.loads(SAMPLE.read_text("utf-8"))
    catalogue = read_catalogue(declared["datasets"], declared["sources"])

    for comment, text in blocks(page, "json"):
        if "request" in comment:
            assert read_request(text.encode(), catalogue).selections


def test_every_code_that_is_written_down_anywhere_is_documented():
    codes = set()
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.keyword) and node.arg in {"code", "error_code"}:
                codes |= {node.value.value} if isinstance(node.value, ast.Constant) else set()
            if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["code"]:
                codes |= {node.value.value} if isinstance(node.value, ast.Constant) else set()
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")

    assert sorted(code for code in codes if isinstance(code, str) and f"| `{code}` |" not in page) == []


def test_every_setting_has_a_sentence():
    lines = (DOCS / "reference" / "settings.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]

    assert [row for row in rows if row.rstrip(" |").endswith(("required", "none", "`"))] == []


def test_decisions_are_numbered_without_gaps_and_told_in_one_form():
    found = sorted((DOCS / "adr").glob("[0-9]*.md"))

    assert [page.name[:4] for page in found] == [f"{number:04}" for number in range(1, len(found) + 1)]
    for page in found:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == DECISION_PARTS
