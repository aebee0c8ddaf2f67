"""Every setting, read once: flags over TENURE_* variables over tenure.toml over the defaults below.

The field `worker.lease_seconds` is `[worker] lease_seconds` in the file and `TENURE_WORKER_LEASE_SECONDS` in the
environment, where lists are written with commas. Nothing else in the product reads the environment. Where a secret is
expected, `env:NAME` takes it from that variable and `file:PATH` from that file.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from tenure.core import limits
from tenure.core.dataset import Catalogue
from tenure.exports.download import LinkKeys

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Secret:
    """Text that must not appear in a log: its repr shows nothing."""

    text: str = field(repr=False)


class SourceType(StrEnum):
    """Kinds of source databases."""

    POSTGRES = "postgres"


class ObjectsType(StrEnum):
    """Where packages are stored."""

    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """`[database]`: Tenure's own PostgreSQL."""

    url: Secret | None = None
    """`postgresql://user:password@host/name`. None: Tenure runs an embedded PostgreSQL in `data_dir`."""
    direct_url: Secret | None = None
    """Past any pooler, for LISTEN and for locks of a session. None: `url` is direct already."""
    prepared_statements: bool = True
    """False behind PgBouncer in transaction mode; then give `direct_url` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """`[api]`: the HTTP server."""

    host: str = "127.0.0.1"
    """Address to listen on; `0.0.0.0` for every interface."""
    port: int = 8080
    """0: any free port."""
    public_url: str | None = None
    """What stands before `/v1` in links given to customers, without a slash at the end. None: host and port."""

    def base_url(self, port: int) -> str:
        """`public_url`, or the address of the port really listened on."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  nothing is bound here
        return self.public_url or f"http://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`[worker]`: the processes that run jobs."""

    processes: int = 4
    """Worker processes that `tenure up` starts."""
    slots: int = 1
    """Jobs one process runs at a time."""
    lease_seconds: float = 300.0
    """Lease of an export: a vanished worker's export runs again after this and 5 s at most."""
    shutdown_grace_seconds: float = 30.0
    """How long a stopping worker lets its jobs go on before it hands them back. 0: not at all."""
    queues: tuple[str, ...] = ()
    """Queues to take jobs from. Empty: all that have a handler here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsSettings:
    """`[objects]`: where packages are stored."""

    type: ObjectsType = ObjectsType.DIRECTORY
    """`directory`: files below `path`."""
    path: Path
    """Default: `objects` in `data_dir`. API and workers must see the same files there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksSettings:
    """`[links]`: signed download links."""

    keys: LinkKeys | None = field(default=None, repr=False)
    """Written `["kid:secret", ...]`, the secret in base64 and of 32 bytes or more. The first signs, all verify.
    None: a key is made in `data_dir` at the first start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    """`[egress]`: where webhooks may go beyond public https addresses."""

    allowed_networks: tuple[Network, ...] = ()
    """Private networks that may be called, such as `10.1.0.0/16`."""
    allow_http: bool = False
    """Also call plain http addresses; then port 80 is allowed too."""
    allowed_ports: tuple[int, ...] = (443,)
    """Ports that may be called at all; give every one, 443 included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """`[sources.NAME]`: a database that exports read from."""

    type: SourceType = SourceType.POSTGRES
    """`postgres`."""
    url: Secret
    """Of a role that may only read, and does not own the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportsSettings:
    """`[exports]`: defaults for tenants that have no settings of their own."""

    package_days: int = limits.PACKAGE_DAYS_DEFAULT
    """Days a finished package can be downloaded."""
    link_seconds: int = limits.LINK_SECONDS_DEFAULT
    """Seconds a signed link works when the request does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole installation's settings, checked."""

    file: Path | None
    """The tenure.toml that was read; None: there was none."""
    data_dir: Path
    """Everything Tenure keeps on disk. Default: `.tenure` beside tenure.toml, else in the working folder."""
    database: DatabaseSettings
    """`[database]`."""
    api: ApiSettings
    """`[api]`."""
    worker: WorkerSettings
    """`[worker]`."""
    objects: ObjectsSettings
    """`[objects]`."""
    links: LinksSettings
    """`[links]`."""
    egress: EgressSettings
    """`[egress]`."""
    sources: Mapping[str, SourceSettings]
    """By name; datasets refer to them."""
    exports: ExportsSettings
    """`[exports]`."""
    catalogue: Catalogue
    """`[[datasets]]`, see `exports.catalogue`."""

    @staticmethod
    def load(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> "Settings":
        """Read and check everything.

        `path` None looks at TENURE_CONFIG, then for tenure.toml in the working folder. `flags` maps dotted names to
        values; None means not given. Raises InvalidSettingsError that names every wrong field at once.
        """
        # Here, because reading needs the classes above: the tree stays the first thing a reader of this file meets.
        from tenure.wiring.settings_reader import read_settings  # noqa: PLC0415

        return read_settings(path, environ, flags)


SECTIONS: dict[str, type] = {
    "database": DatabaseSettings,
    "api": ApiSettings,
    "worker": WorkerSettings,
    "objects": ObjectsSettings,
    "links": LinksSettings,
    "egress": EgressSettings,
    "exports": ExportsSettings,
}
"""The sections whose every field environment and flags may set."""


def setting_paths() -> tuple[tuple[str, ...], ...]:
    """Every field that has a TENURE_ variable and may have a flag."""
    return (("data_dir",), *((name, item.name) for name, section in SECTIONS.items() for item in fields(section)))
