import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tenure.cli.config import config


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(config, ["check", *arguments])


def test_a_good_configuration_is_ok(run):
    result = run()

    assert result.exit_code == 0
    assert result.stdout.startswith("ok: ")


def test_every_wrong_field_is_printed_and_the_exit_code_is_2(run, tmp_path):
    (tmp_path / "tenure.toml").write_text("[api]\nport = -1\n[worker]\nslots = 0\n")
    result = run()

    assert result.exit_code == 2
    assert "api.port: " in result.stderr
    assert "worker.slots: " in result.stderr
    assert "2 problems" in result.stderr


def test_json_is_one_object_for_both_outcomes(run, tmp_path):
    assert json.loads(run("--json").stdout)["ok"] is True

    (tmp_path / "other.toml").write_text("x = 1")
    answer = json.loads(run("--json", "--config", "other.toml").stdout)

    assert answer["ok"] is False
    assert answer["problems"][0]["name"] == "x"


def test_the_command_group_loads_nothing_heavy():
    heavy = "{'fastapi', 'msgspec', 'psycopg', 'tenure.wiring'}"
    code = f"import sys, tenure.cli.config; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"
