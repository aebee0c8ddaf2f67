"""The data directory of PostgreSQL: made whole or not at all, and only opened by the major version that made it."""

import os
import secrets
import shutil
import sys
from pathlib import Path

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded.binaries import PgBinaries
from tenure.wiring.embedded.home import Home, give, write_private

ROLE = "tenure"
DATABASE = "tenure"
FIRST_MAJOR_WITH_BUILTIN_LOCALE = 17
UNFINISHED = "unfinished-"


def prepare_cluster(home: Home, binaries: PgBinaries, *, durable: bool) -> str:
    """Make the data directory if there is none, else see that it fits; returns the superuser's password."""
    for leftover in home.server_dir.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    password_file = home.data_dir / "password"
    known = password_file.exists()
    if not known:
        write_private(password_file, secrets.token_hex(24))
    password = password_file.read_text().strip()
    if home.cluster.exists() and any(home.cluster.iterdir()):
        _check_version(home.cluster, binaries)
        if not known:  # it was lost, for instance by restoring the data alone: whoever owns the files may set it
            alter = f"ALTER ROLE {ROLE} PASSWORD '{password}'"
            _single_user(home, binaries, home.cluster, alter)
    else:
        _create(home, binaries, password, durable=durable)
    return password


def _check_version(cluster: Path, binaries: PgBinaries) -> None:
    try:
        made_by = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedPostgresError(
            f"{cluster} is not a PostgreSQL data directory: it has files but no PG_VERSION. "
            "Hint: restore it from a backup, or move it away to begin with an empty database."
        ) from None
    if made_by != str(binaries.version[0]):
        raise EmbeddedPostgresError(
            f"The data in {cluster} was made by PostgreSQL {made_by}, but the programs found are {binaries}. "
            f"Hint: set TENURE_PG_BIN to the bin directory of PostgreSQL {made_by}; to move to {binaries.version[0]}, "
            "dump the database with the old version and restore it into a new data directory."
        )


def _create(home: Home, binaries: PgBinaries, password: str, *, durable: bool) -> None:
    """Make it under another name first, so that a kill at any moment leaves no half of a data directory.

    The name is new each time: an initdb that outlives its killed parent must not meet the next one.
    """
    fresh = home.server_dir / f"{UNFINISHED}{secrets.token_hex(4)}"
    # initdb reads the password from a file of its account; a pipe of root's cannot be reopened by it.
    password_file = home.server_dir / f"{UNFINISHED}password"
    password_file.unlink(missing_ok=True)
    write_private(password_file, password)
    give(password_file, home.account)
    try:
        home.account.run(
            binaries.initdb,
            f"--pgdata={fresh}",
            f"--username={ROLE}",
            f"--pwfile={password_file}",
            "--auth-local=scram-sha-256",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--data-checksums",
            *_locale_options(binaries),
            *(() if durable else ("--no-sync",)),
        )
    finally:
        password_file.unlink(missing_ok=True)
    _single_user(home, binaries, fresh, f"CREATE DATABASE {DATABASE}", durable=durable)
    fresh.replace(home.cluster)
    _sync_directory(home.server_dir)


def _locale_options(binaries: PgBinaries) -> tuple[str, ...]:
    """C.UTF-8: sorts by code point, alike on every machine and after every upgrade of its C library."""
    locale = "--locale=C.UTF-8" if sys.platform == "linux" else "--locale=C"
    if binaries.version[0] >= FIRST_MAJOR_WITH_BUILTIN_LOCALE:
        return (locale, "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    return (locale,)


def _single_user(home: Home, binaries: PgBinaries, cluster: Path, statement: str, *, durable: bool = True) -> None:
    """Run one statement without a server, and so without a client or a password."""
    fsync = "on" if durable else "off"
    options = ("--single", "-D", cluster, "-c", "exit_on_error=on", "-c", f"fsync={fsync}")
    home.account.run(binaries.postgres, *options, "postgres", stdin=f"{statement};\n")


def _sync_directory(directory: Path) -> None:
    """Make the new name durable: a rename lost in a power cut would take later commits with it."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
