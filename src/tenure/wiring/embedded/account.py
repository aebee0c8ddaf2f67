"""Who runs PostgreSQL. It refuses to run as root, so root hands it to an unprivileged account that exists already.

No account is created: adding users is the administrator's business. `tenure` comes first, for installations that
made one; then `postgres`; then `nobody`, which every system has, and which shares its rights with whatever else
runs as `nobody`. Data that exists already decides by its owner, so a package installed later changes nothing.
"""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenure.core.errors import EmbeddedPostgresError
from tenure.wiring.embedded.launch import CAN_REACH, launch_command

ACCOUNTS_FOR_ROOT = ("tenure", "postgres", "nobody")
ROOT = 0
COMMAND_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The operating system account that owns the data and runs the server."""

    name: str
    uid: int
    gid: int

    def command(self, *command: str | Path) -> list[str]:
        """The command line that runs `command` as this account."""
        return launch_command(self.uid, self.gid, [str(part) for part in command])

    def can_reach(self, path: Path) -> bool:
        """Whether this account may enter or execute `path`, and so pass every directory above it."""
        if self.uid == os.geteuid():
            return os.access(path, os.X_OK)
        return _call(self.command(CAN_REACH, path), answers=(0, 1)) == 0

    def run(self, *command: str | Path, stdin: str = "") -> None:
        """Run one of PostgreSQL's programs to its end; its last words are in the error."""
        _call(self.command(*command), stdin=stdin)


def choose_account(owned: Path) -> Account:
    """The owner of `owned` where that exists; else the present user, or what root hands over to."""
    present = os.geteuid()
    owner = owned.stat().st_uid if owned.exists() else present
    if owner != ROOT:
        if present not in (ROOT, owner):
            raise EmbeddedPostgresError(
                f"{owned} belongs to {_account(owner).name}, not to the present user. "
                f"Hint: run Tenure as {_account(owner).name} or as root, or choose another data directory."
            )
        return _account(owner)
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in ACCOUNTS_FOR_ROOT:
        if name in known and known[name].pw_uid != ROOT:
            return _account(known[name].pw_uid)
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and there is no account {' or '.join(ACCOUNTS_FOR_ROOT)} to run it. "
        "Hint: run Tenure as an ordinary user, or add an account named tenure."
    )


def child_environment() -> dict[str, str]:
    """What PostgreSQL's programs get to see: no secrets of ours, no PG* variables, and messages in English.

    PATH and LD_LIBRARY_PATH are kept because some interpreters and builds do not start without them.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"LC_ALL": "C"}


def _account(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedPostgresError(
            f"User id {uid} has no entry in /etc/passwd, which PostgreSQL's initdb needs. "
            "Hint: run Tenure as a named user, or set TENURE_DATABASE_URL to use a server of your own."
        ) from None
    return Account(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def _call(command: list[str], *, stdin: str = "", answers: Sequence[int] = (0,)) -> int:
    # The working directory is one that every account can enter: PostgreSQL returns to it while finding its files.
    try:
        done = subprocess.run(  # noqa: S603 - our own launcher with a program the resolver found
            command,
            input=stdin,
            capture_output=True,
            text=True,
            cwd="/",
            env=child_environment(),
            start_new_session=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise EmbeddedPostgresError(
            f"`{problem.cmd}` did not end within {COMMAND_SECONDS} s. Hint: see whether the disk answers."
        ) from problem
    if done.returncode not in answers:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise EmbeddedPostgresError(
            f"`{' '.join(command)}` ended with status {done.returncode}. Hint: its last words tell the cause:\n{words}"
        )
    return done.returncode
