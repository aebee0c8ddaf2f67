"""Where the embedded server's things lie.

    data_dir/              Tenure's own (0700; as root 0710 with the account's group, so that it can pass through)
        password  port  owner.lock  start.log
        server/            the account's own, 0700: cluster/ log/ run/ (sockets)
        programs/          a copy of the wheel's programs, only where the account cannot reach the wheel

A directory that Tenure did not make keeps its mode, always. So where root's data_dir lies below a private directory
(a clone in /root, say), `server` is a link to a place below /var/lib/tenure instead, which the account can reach.
"""

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded.account import ROOT, Account, choose_account
from tenure.wiring.embedded.binaries import PgBinaries

FALLBACK_DIR = Path("/var/lib/tenure")
LOOPBACK = "127.0.0.1"
LONGEST_SOCKET_PATH = 103  # bytes, without the closing NUL: 107 on Linux, 103 on macOS and the BSDs


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The places of one embedded server and the account that runs it; `server_dir` holds no link."""

    data_dir: Path
    server_dir: Path
    account: Account

    @property
    def cluster(self) -> Path:
        return self.server_dir / "cluster"

    @property
    def log_dir(self) -> Path:
        return self.server_dir / "log"


def make_data_dir(data_dir: Path) -> None:
    """Make `data_dir` if it is missing; its parents get the usual modes."""
    if not data_dir.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _let_pass(data_dir, choose_account(data_dir))


def open_home(data_dir: Path, fallback_dir: Path = FALLBACK_DIR) -> Home:
    """The places of `data_dir`, made where missing. Call it as the owner only."""
    link = data_dir / "server"
    if link.is_symlink() and not link.exists():
        raise EmbeddedPostgresError(
            f"The data of {data_dir} was kept in {link.readlink()}, which is gone. "
            f"Hint: restore it from a backup, or delete {link} to begin with an empty database."
        )
    account = choose_account(link)
    if not link.exists():
        _make_server_dir(link, account, fallback_dir)
    home = Home(data_dir=data_dir, server_dir=link.resolve(), account=account)
    for directory in (home.server_dir, home.log_dir):
        private_dir(directory, account)
    return home


def private_dir(directory: Path, account: Account) -> None:
    """Make a directory for the account alone."""
    directory.mkdir(mode=0o700, exist_ok=True)
    give(directory, account)


def give(path: Path, account: Account) -> None:
    """Let the account own what we made. Links are not followed: the account can place some where root acts."""
    if os.geteuid() == ROOT:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def socket_dir(home: Home) -> Path:
    """A fresh private directory for the sockets, short enough for the kernel's limit on their paths."""
    remove_sockets(home)
    directory = home.server_dir / "run"
    if len(os.fsencode(directory / ".s.PGSQL.65535.lock")) <= LONGEST_SOCKET_PATH:
        private_dir(directory, home.account)
        return directory
    directory = Path(tempfile.mkdtemp(prefix="tenure-", dir="/tmp"))  # TMPDIR can be long as well
    (home.data_dir / "run").symlink_to(directory)
    give(directory, home.account)
    return directory


def remove_sockets(home: Home) -> None:
    """Remove what `socket_dir` made, also what a killed process left behind."""
    link = home.data_dir / "run"
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
    shutil.rmtree(home.server_dir / "run", ignore_errors=True)


def free_port(data_dir: Path) -> int:
    """The port of the last start where it is still free, else any free one; remembered for the next start."""
    remembered = data_dir / "port"
    wishes = [0]
    with contextlib.suppress(OSError, ValueError):
        wishes.insert(0, int(remembered.read_text()))
    for wish in wishes:
        with socket.socket() as probe, contextlib.suppress(OSError, OverflowError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
            probe.bind((LOOPBACK, wish))
            port: int = probe.getsockname()[1]
            if port != wish:
                write_private(remembered, str(port))
            return port
    raise EmbeddedPostgresError(f"No port is free on {LOOPBACK}. Hint: see with `ss -ltn` what occupies them all.")


def write_private(path: Path, text: str) -> None:
    """Replace a file of ours as a whole, readable by its owner only (mkstemp makes it 0600)."""
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(fresh).replace(path)


def reachable_binaries(home: Home, binaries: PgBinaries) -> PgBinaries:
    """The same programs where the account can run them: copied once if they lie below a private directory."""
    if home.account.can_reach(binaries.postgres):
        return binaries
    package = binaries.bin_dir.parent.parent
    if binaries.bin_dir.parent.name != "pginstall":
        raise EmbeddedPostgresError(
            f"The account {home.account.name} cannot run the programs in {binaries.bin_dir}. "
            f"Hint: let it pass through the directories above, or run `pip install 'tenure[embedded]'`."
        )
    version = "-".join(map(str, binaries.version))
    copy = home.server_dir.parent / "programs" / f"{package.name}-{version}"
    if not copy.exists():
        _copy_wheel(package, copy)
    return replace(binaries, bin_dir=copy / package.name / "pginstall" / "bin")


def _copy_wheel(package: Path, copy: Path) -> None:
    """Copy the programs and, side by side as they expect, their libraries."""
    shutil.rmtree(copy.parent, ignore_errors=True)  # other versions, and what a killed copy left
    unfinished = copy.with_suffix(".unfinished")
    for source in (package / "pginstall", package.with_name(f"{package.name}.libs")):
        if source.exists():
            target = unfinished / source.relative_to(package.parent)
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
    for path in (copy.parent, unfinished, *unfinished.rglob("*")):
        if not path.is_symlink():  # whatever umask and venv made of it, the account must read it
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    unfinished.replace(copy)


def _make_server_dir(server_dir: Path, account: Account, fallback_dir: Path) -> None:
    data_dir = server_dir.parent
    if account.can_reach(data_dir) or os.geteuid() != ROOT:
        private_dir(server_dir, account)
        return
    if not fallback_dir.exists():
        fallback_dir.mkdir(mode=0o711, parents=True)
        fallback_dir.chmod(0o711)
    shelter = fallback_dir / secrets.token_hex(6)
    shelter.mkdir(mode=0o700)
    _let_pass(shelter, account)
    write_private(shelter / "belongs-to", f"{data_dir}\n")
    if not account.can_reach(shelter):
        shutil.rmtree(shelter)
        raise EmbeddedPostgresError(
            f"The account {account.name}, which runs PostgreSQL for root, can reach neither {data_dir} nor "
            f"{fallback_dir}. Hint: choose a data directory that it can pass to, or run Tenure as an ordinary user."
        )
    private_dir(shelter / "server", account)
    server_dir.symlink_to(shelter / "server")


def _let_pass(directory: Path, account: Account) -> None:
    """Let the account pass through a directory we just made."""
    if os.geteuid() == ROOT:
        os.chown(directory, -1, account.gid)
        directory.chmod(0o710)
