"""The settings as one table: file, environment and flags laid over one another, and the secrets they point to.

Precedence: flags over environment over file. A value's origin is kept, so that a problem can say where it came from.
"""

import difflib
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenure.core.errors import FieldProblem, InvalidSettingsError
from tenure.core.fields import LooseText, Problems, dotted_name
from tenure.core.fields import Path as FieldPath

FILE_NAME = "tenure.toml"
FILE_BYTES_MAX = 4 * 1024 * 1024
CONFIG_VARIABLE = "TENURE_CONFIG"

# Kubernetes sets NAME_PORT=tcp://10.0.0.1:80 for every service; one called "tenure-api" would set our API port.
_KUBERNETES = re.compile(r"(tcp|udp|sctp)://[0-9\[]", re.ASCII)
_NEAR = 0.9
"""How alike an unknown TENURE_ variable must be to be called a slip of the pen; others may be somebody else's."""


class SettingsProblems(Problems):
    """Problems under dotted names; those of the environment or of a flag say so."""

    def __init__(self) -> None:
        super().__init__(dotted_name)
        self.origins: dict[FieldPath, str] = {}

    def note(self, path: FieldPath, detail: str) -> None:
        origin = self.origins.get(path[:2]) or self.origins.get(path[:1])
        super().note(path, f"{detail} (from {origin})" if origin else detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """What the settings are read from. `fields` are the dotted paths that environment and flags may set."""

    path: Path | None
    environ: Mapping[str, str] = field(repr=False)
    flags: Mapping[str, object] = field(repr=False)
    fields: tuple[FieldPath, ...]


def find_file(path: Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """The file named, else the one TENURE_CONFIG names, else tenure.toml in the folder; None when there is none."""
    if path is None and environ.get(CONFIG_VARIABLE):
        path = Path(environ[CONFIG_VARIABLE])
    if path is not None:
        return folder / path
    return folder / FILE_NAME if (folder / FILE_NAME).exists() else None


def merge_layers(layers: Layers, problems: SettingsProblems) -> dict[str, object]:
    """One table of all layers. Raises InvalidSettingsError when the file cannot be read at all."""
    table = _read_file(layers.path) if layers.path else {}
    for path in layers.fields:
        variable = variable_name(path)
        value = layers.environ.get(variable, "")
        if value and not _KUBERNETES.match(value):
            _lay(table, path, LooseText(value), variable, problems)
    for name, flag in layers.flags.items():
        if flag is not None:
            loose = LooseText(flag) if isinstance(flag, (str, Path)) else flag
            _lay(table, tuple(name.split(".")), list(loose) if isinstance(loose, tuple) else loose, "a flag", problems)
    _refuse_slips(layers, problems)
    return table


def variable_name(path: FieldPath) -> str:
    """`worker.lease_seconds` -> `TENURE_WORKER_LEASE_SECONDS`."""
    return "_".join(["TENURE", *(str(step).upper() for step in path)])


def read_secret(text: str, environ: Mapping[str, str]) -> str:
    """The secret behind `env:NAME` or `file:PATH`; any other text is the secret itself.

    Raises ValueError with a sentence that does not hold the secret.
    """
    kind, _, rest = text.partition(":")
    if kind == "env":
        if not environ.get(rest):
            raise ValueError(f"the environment variable {rest} is not set")
        return environ[rest]
    return _read_secret_file(Path(rest)) if kind == "file" else text


def _read_file(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise _file_problem(path, f"is larger than {FILE_BYTES_MAX} bytes")
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise _file_problem(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _file_problem(path, "is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _file_problem(path, f"is not valid TOML: {error}") from error


def _file_problem(path: Path, detail: str) -> InvalidSettingsError:
    return InvalidSettingsError(FieldProblem(pointer=str(path), detail=detail))


def _lay(table: dict[str, object], path: FieldPath, value: object, origin: str, problems: SettingsProblems) -> None:
    *sections, name = map(str, path)
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            # The file's own mistake is reported when the section is read; the layer above it is not laid.
            return
        table = inner
    table[name] = value
    problems.origins[path] = origin


def _refuse_slips(layers: Layers, problems: SettingsProblems) -> None:
    """A mistyped variable would otherwise be ignored in silence."""
    known = [variable_name(path) for path in layers.fields] + [CONFIG_VARIABLE]
    for variable, value in layers.environ.items():
        if not variable.startswith("TENURE_") or variable in known or _KUBERNETES.match(value):
            continue
        near = difflib.get_close_matches(variable, known, n=1, cutoff=_NEAR)
        if near:
            problems.note((variable,), f"is not a variable Tenure reads. Did you mean {near[0]}?")


def _read_secret_file(path: Path) -> str:
    try:
        if path.stat().st_mode & stat.S_IROTH:
            raise ValueError(f"the file {path} can be read by everybody; run: chmod o-rwx {path}")
        text = path.read_text("utf-8").strip()
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the file {path} is not UTF-8") from error
    if not text:
        raise ValueError(f"the file {path} is empty")
    return text
