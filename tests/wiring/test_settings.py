import ast
import base64
import inspect
from itertools import pairwise
from pathlib import Path

import pytest

import tenure.wiring.settings
from tenure.core.errors import InvalidSettingsError
from tenure.wiring.settings import Settings

KEY_TEXT = "k1:" + base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def load(text="", environ=None, flags=None):
    Path("tenure.toml").write_text(text, "utf-8")
    return Settings.load(None, environ or {}, flags or {})


def problems(text="", environ=None, flags=None):
    with pytest.raises(InvalidSettingsError) as caught:
        load(text, environ, flags)
    return {problem.pointer: problem.detail for problem in caught.value.problems}


def test_without_any_file_the_defaults_run_an_embedded_installation(tmp_path):
    settings = Settings.load(None, {}, {})

    assert settings.file is None
    assert settings.database.url is None
    assert settings.data_dir == tmp_path / ".tenure"
    assert settings.objects.path == tmp_path / ".tenure" / "objects"
    assert (settings.api.host, settings.api.port, settings.worker.processes) == ("127.0.0.1", 8080, 4)
    assert settings.worker.lease_seconds == 300
    assert settings.links.keys is None


def test_flags_win_over_the_environment_which_wins_over_the_file():
    text = "[api]\nport = 1\n[worker]\nprocesses = 1\nslots = 1\n"
    environ = {"TENURE_API_PORT": "2", "TENURE_WORKER_PROCESSES": "2"}
    settings = load(text, environ, {"api.port": 3, "worker.slots": None})

    assert (settings.api.port, settings.worker.processes, settings.worker.slots) == (3, 2, 1)


def test_paths_are_relative_to_the_file_that_names_them(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "mine.toml").write_text('data_dir = "data"\n[objects]\npath = "packages"\n')
    settings = Settings.load(None, {"TENURE_CONFIG": "etc/mine.toml"}, {})

    assert settings.data_dir == folder / "data"
    assert settings.objects.path == folder / "packages"


def test_the_environment_can_say_every_kind_of_value():
    environ = {
        "TENURE_DATABASE_PREPARED_STATEMENTS": "off",
        "TENURE_WORKER_LEASE_SECONDS": "60.5",
        "TENURE_WORKER_QUEUES": "exports, reports",
        "TENURE_EGRESS_ALLOWED_PORTS": "443,8443",
        "TENURE_EGRESS_ALLOWED_NETWORKS": "10.0.0.0/8",
        "TENURE_LINKS_KEYS": KEY_TEXT,
        "TENURE_DATA_DIR": "",
    }
    settings = load("", environ)

    assert settings.database.prepared_statements is False
    assert settings.worker.lease_seconds == 60.5
    assert settings.worker.queues == ("exports", "reports")
    assert settings.egress.allowed_ports == (443, 8443)
    assert str(settings.egress.allowed_networks[0]) == "10.0.0.0/8"
    assert settings.links.keys[0].kid == "k1"
    assert settings.data_dir.name == ".tenure"


def test_every_wrong_field_is_named_at_once():
    text = """
    data_dir = 3
    nonsense = true
    [api]
    port = 70000
    hots = "x"
    public_url = "https://user:pw@host/"
    [worker]
    processes = true
    lease_seconds = nan
    [egress]
    allowed_networks = ["10.0.0.1/8"]
    allowed_ports = [0]
    [links]
    keys = ["short:YWJj", "no colon"]
    """

    assert set(problems(text)) == {
        "data_dir",
        "nonsense",
        "api.port",
        "api.hots",
        "api.public_url",
        "worker.processes",
        "worker.lease_seconds",
        "egress.allowed_networks",
        "egress.allowed_ports",
        "links.keys[0]",
        "links.keys[1]",
    }


def test_a_misspelt_field_gets_the_near_name():
    assert 'Did you mean "host"?' in problems('[api]\nhots = "x"')["api.hots"]


def test_a_misspelt_variable_is_refused_and_foreign_ones_are_not():
    found = problems("", {"TENURE_DATABSE_URL": "x", "TENURE_SHOP_PASSWORD": "fine"})

    assert set(found) == {"TENURE_DATABSE_URL"}
    assert "TENURE_DATABASE_URL" in found["TENURE_DATABSE_URL"]


def test_a_wrong_value_from_the_environment_says_where_it_came_from():
    assert "from TENURE_API_PORT" in problems("", {"TENURE_API_PORT": "many"})["api.port"]


def test_what_kubernetes_sets_for_a_service_called_tenure_api_is_ignored():
    assert (
        load("", {"TENURE_API_PORT": "tcp://10.0.0.7:80", "TENURE_API_PORT_80_TCP": "tcp://10.0.0.7:80"}).api.port
        == 8080
    )


def test_a_direct_address_needs_the_main_one():
    assert "database.direct_url" in problems('[database]\ndirect_url = "postgresql://h/d"')


def test_links_may_not_outlive_packages():
    assert "exports.link_seconds" in problems("[exports]\npackage_days = 1\nlink_seconds = 90000")


def test_secrets_come_from_variables_and_files_and_stay_out_of_repr(tmp_path):
    secret_file = tmp_path / "url"
    secret_file.write_text("postgresql://u:hidden2@h/d\n")
    secret_file.chmod(0o600)
    text = f"""
    [database]
    url = "env:DB"
    direct_url = "file:{secret_file}"
    [links]
    keys = ["{KEY_TEXT}"]
    """
    settings = load(text, {"DB": "postgresql://u:hidden1@h/d"})

    assert settings.database.url.text == "postgresql://u:hidden1@h/d"
    assert settings.database.direct_url.text == "postgresql://u:hidden2@h/d"
    assert "hidden" not in repr(settings)
    assert KEY_TEXT[4:] not in repr(settings)


def test_a_secret_that_is_not_there_is_named():
    assert "SHOP_URL" in problems('[sources.shop]\ntype = "postgres"\nurl = "env:SHOP_URL"')["sources.shop.url"]
    assert "cannot be read" in problems('[database]\nurl = "file:/does/not/exist"')["database.url"]


def test_a_secret_file_that_everybody_can_read_is_refused(tmp_path):
    secret_file = tmp_path / "url"
    secret_file.write_text("postgresql://h/d")
    secret_file.chmod(0o644)

    assert "chmod" in problems(f'[database]\nurl = "file:{secret_file}"')["database.url"]


def test_a_wrong_address_never_shows_its_password():
    found = problems(
        '[database]\nurl = "mysql://root:hunter2@h/d"\n[links]\nkeys = ["k:hunter2hunter2", "k:hunter2hunter2"]'
    )

    assert "hunter2" not in str(found)


def test_a_key_id_used_twice_is_refused():
    assert "used twice" in problems(f'[links]\nkeys = ["{KEY_TEXT}", "{KEY_TEXT}"]')["links.keys[1]"]


@pytest.mark.parametrize("content", [b"[api\n", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_file_that_is_no_toml_is_one_problem(content):
    Path("tenure.toml").write_bytes(content)
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load(None, {}, {})

    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("text", ["api = 3", "sources = []", "sources.shop = 1", "datasets = 3", "datasets = [1]"])
def test_a_section_of_the_wrong_kind_is_a_problem(text):
    assert problems(text)


def test_a_section_of_the_wrong_kind_is_a_problem_under_an_environment_too():
    assert "api" in problems("api = 3", {"TENURE_API_PORT": "80"})


def test_a_named_file_must_exist():
    with pytest.raises(InvalidSettingsError, match="No such file"):
        Settings.load(Path("missing.toml"), {}, {})


def test_datasets_and_sources_become_the_catalogue():
    text = """
    [sources.shop]
    url = "postgresql://h/d"
    [[datasets]]
    name = "orders"
    source = "shop"
    table = "public.orders"
    tenant_column = "tenant_id"
    key = ["id"]
    columns = ["id"]
    """

    assert list(load(text).catalogue.datasets) == ["orders"]


def test_problems_of_datasets_come_with_the_others():
    found = problems("[api]\nport = -1\n[[datasets]]\nname = 3")

    assert {"api.port", "datasets[0].name"} <= set(found)


def test_every_setting_says_what_it_means():
    """The reference is made from the docstrings below the fields, so every field must have one."""
    tree = ast.parse(inspect.getsource(tenure.wiring.settings))
    undocumented = []
    for section in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Settings")):
        for node, after in pairwise([*section.body, ast.Pass()]):
            if isinstance(node, ast.AnnAssign) and not (
                isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            ):
                undocumented.append(f"{section.name}.{ast.unparse(node.target)}")

    assert undocumented == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [("0.0.0.0", "http://127.0.0.1:81"), ("::1", "http://[::1]:81"), ("web", "http://web:81")],
)
def test_without_a_public_url_links_use_host_and_port(host, expected):
    assert load("", flags={"api.host": host}).api.base_url(81) == expected


def test_a_public_url_loses_its_last_slash():
    assert load('[api]\npublic_url = "https://x.example/exports/"').api.base_url(1) == "https://x.example/exports"
