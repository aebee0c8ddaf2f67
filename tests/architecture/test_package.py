"""What is released agrees with itself: version, changelog, public names, locks, make targets."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository_files import PRODUCT, ROOT, modules, shown, tree

import tenure

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE | re.IGNORECASE)


def locked(name):
    """Name -> versions in a lock file."""
    found = {}
    for package, version in LOCKED.findall((ROOT / name).read_text("utf-8")):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


def wanted(*groups):
    """Names that pyproject.toml asks for, in the extras and groups given, besides the core."""
    extras, others = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    lines = PROJECT["project"]["dependencies"] + [line for group in groups for line in (extras | others)[group]]
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}


def module_name(path):
    return ".".join(("tenure", *path.relative_to(PRODUCT).with_suffix("").parts)).removesuffix(".__init__")


def test_one_version_everywhere():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")

    assert PROJECT["project"]["version"] == tenure.__version__
    assert re.search(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)[1] == tenure.__version__


@pytest.mark.parametrize("path", [path for path in modules() if "__all__" in path.read_text("utf-8")], ids=shown)
def test_public_names_exist_and_are_listed_once(path):
    """Their order is ruff's to judge."""
    module = importlib.import_module(module_name(path))

    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(module.__all__) == len(set(module.__all__))


def test_the_package_names_what_it_offers():
    public = {name for name in vars(tenure) if not name.startswith("_")} - {path.name for path in PRODUCT.iterdir()}

    assert public <= set(tenure.__all__)
    assert tree(PRODUCT / "__init__.py").body[-1].targets[0].id == "__all__"


def test_the_locks_hold_what_the_project_asks_for():
    runtime = wanted(*[name for name in PROJECT["project"]["optional-dependencies"] if name != "all"], "build")
    everything = runtime | wanted("dev")

    for lock, names in (("requirements.lock", runtime), ("requirements-dev.lock", everything)):
        found = locked(lock)
        assert [name for name in sorted(names) if name not in found] == [], lock
        wrong = [str(names[name]) for name in names if not all(map(names[name].specifier.contains, found[name]))]
        assert wrong == [], lock


def test_both_locks_agree():
    runtime, everything = locked("requirements.lock"), locked("requirements-dev.lock")

    assert {name: found for name, found in runtime.items() if everything.get(name) != found} == {}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_version_has_hashes_and_no_address(lock):
    text = (ROOT / lock).read_text("utf-8")

    entries = [entry for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE | re.IGNORECASE) if "==" in entry]

    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def test_all_extras_are_in_all():
    extras = PROJECT["project"]["optional-dependencies"]
    named = set(Requirement(extras["all"][0]).extras)

    assert named == set(extras) - {"all"}


def test_ci_runs_what_check_runs():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    steps = re.search(r"^check: ([a-z -]+) ##", makefile, re.MULTILINE)[1].split()
    script = (ROOT / ".ci" / "run").read_text("utf-8")

    assert re.findall(r"^make ([a-z-]+)$", script, re.MULTILINE) == steps
    assert "set -euo pipefail" in script


def test_every_target_is_explained():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = set(re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split())

    assert phony == set(re.findall(r"^([a-z-]+):.*## .+$", makefile, re.MULTILINE))


def test_the_licence_is_the_one_declared():
    text = Path(ROOT / "LICENSE").read_text("utf-8")

    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
