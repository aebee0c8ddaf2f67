"""The contracts of `.importlinter` hold, and each of them would notice: in a copy of the tree every one is broken."""

import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from repository_files import PRODUCT, ROOT

CONTRACTS = ROOT / ".importlinter"
LINT = Path(sys.executable).with_name("lint-imports")
VIOLATIONS = {
    "rooms": ("engine/clock.py", "import tenure.exports.admit"),
    "core-pure": ("core/ids.py", "import time"),
    "sql-one-room": ("exports/plan.py", "import psycopg"),
    "engine-generic": ("engine/settle.py", "import tenure.core.export"),
    "child-process": ("exports/plan.py", "import tenure.store.jobs"),
    "surfaces": ("api/health.py", "import tenure.store.database"),
    "drivers": ("exports/write.py", "import tenure.objects.directory"),
    "settings": ("api/ranges.py", "import tenure.wiring.settings"),
    "export-steps": ("exports/write.py", "import tenure.exports.admit"),
    "testing": ("engine/events.py", "import tenure.testing.kinds"),
}
"""Contract -> (module, an import it must not have)."""


def contract_names():
    parser = ConfigParser()
    parser.read(CONTRACTS)
    prefix = "importlinter:contract:"
    return {
        section.removeprefix(prefix): parser[section]["name"]
        for section in parser.sections()
        if section.startswith(prefix)
    }


def lint(folder, source):
    environ = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [LINT, "--no-cache", CONTRACTS]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def copy(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PRODUCT, tmp_path / "src" / "tenure", ignore=ignored)
    return tmp_path / "src"


def test_the_arrows_hold(tmp_path):
    done = lint(tmp_path, PRODUCT.parent)

    assert done.returncode == 0, done.stdout


def test_every_contract_notices_when_it_is_broken(tmp_path, copy):
    for module, line in VIOLATIONS.values():
        path = copy / "tenure" / module
        path.write_text(f"{path.read_text('utf-8')}\n{line}\n", "utf-8")

    report = lint(tmp_path, copy).stdout

    assert [name for name in contract_names().values() if f"{name} BROKEN" not in report] == [], report


def test_a_room_that_is_not_in_the_contract_is_noticed(tmp_path, copy):
    (copy / "tenure" / "attic").mkdir()
    (copy / "tenure" / "attic" / "__init__.py").write_text('"""A room nobody declared."""\n', "utf-8")

    report = lint(tmp_path, copy).stdout

    assert f"{contract_names()['rooms']} BROKEN" in report or "attic" in report


def test_every_contract_has_its_violation():
    assert set(contract_names()) == set(VIOLATIONS)
