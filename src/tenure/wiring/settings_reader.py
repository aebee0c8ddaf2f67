"""Turns the merged table into `Settings`, section by section; problems are collected and raised once, at the end."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tenure.core import limits
from tenure.core.dataset import Catalogue
from tenure.core.errors import InvalidSettingsError
from tenure.core.fields import Table, shown
from tenure.exports.catalogue import read_catalogue
from tenure.exports.download import LinkKey, LinkKeys
from tenure.wiring.layers import Layers, SettingsProblems, find_file, merge_layers, read_secret
from tenure.wiring.settings import (
    ApiSettings,
    DatabaseSettings,
    EgressSettings,
    ExportsSettings,
    LinksSettings,
    Network,
    ObjectsSettings,
    ObjectsType,
    Secret,
    Settings,
    SourceSettings,
    SourceType,
    WorkerSettings,
    setting_paths,
)

PORT_MAX = 65_535
SECONDS_PER_DAY = 86_400
PACKAGE_DAYS_MAX = 3_650
DATA_DIR = ".tenure"

_SOURCE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_POSTGRES_URL = re.compile(r"postgres(ql)?://|[a-z_]+ *=", re.ASCII)


def read_settings(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    """See `Settings.load`."""
    problems = SettingsProblems()
    file = find_file(path, environ, Path.cwd())
    layers = Layers(path=file, environ=environ, flags=flags, fields=setting_paths())
    root = Table(merge_layers(layers, problems), (), problems)
    settings = _Reader(root, environ, folder=file.parent if file else Path.cwd()).read(file)
    root.refuse_unknown()
    if problems.found():
        raise InvalidSettingsError(*problems.found())
    return settings


class _Reader:
    """What every section needs beside its own table: the environment for secrets, the folder paths are relative to."""

    def __init__(self, root: Table, environ: Mapping[str, str], *, folder: Path) -> None:
        self._root = root
        self._environ = environ
        self._folder = folder

    def read(self, file: Path | None) -> Settings:
        data_dir = self._folder / self._root.text("data_dir", DATA_DIR)
        sources = self._read_sources()
        settings = Settings(
            file=file,
            data_dir=data_dir,
            database=self._read_database(self._root.table("database")),
            api=_read_api(self._root.table("api")),
            worker=_read_worker(self._root.table("worker")),
            objects=self._read_objects(self._root.table("objects"), data_dir),
            links=self._read_links(self._root.table("links")),
            egress=_read_egress(self._root.table("egress")),
            sources=sources,
            exports=_read_exports(self._root.table("exports")),
            catalogue=self._read_catalogue(sources),
        )
        self._check_relations(settings)
        return settings

    def _read_database(self, table: Table) -> DatabaseSettings:
        settings = DatabaseSettings(
            url=self._read_postgres_url(table, "url"),
            direct_url=self._read_postgres_url(table, "direct_url"),
            prepared_statements=table.flag("prepared_statements", default=True),
        )
        table.refuse_unknown()
        return settings

    def _read_objects(self, table: Table, data_dir: Path) -> ObjectsSettings:
        kind = table.choice("type", ObjectsType.DIRECTORY)
        path = table.optional_text("path")
        table.refuse_unknown()
        return ObjectsSettings(type=kind, path=self._folder / path if path else data_dir / "objects")

    def _read_sources(self) -> dict[str, SourceSettings]:
        sources = self._root.table("sources")
        found: dict[str, SourceSettings] = {}
        for name in sources.names():
            if not _SOURCE_NAME.fullmatch(name):
                sources.note(name, "the name must start with a small letter; small letters, digits and _ may follow")
            table = sources.table(name)
            kind = table.choice("type", SourceType.POSTGRES)
            if not table.has("url"):
                table.note("url", "is required")
            found[name] = SourceSettings(type=kind, url=self._read_postgres_url(table, "url") or Secret(""))
            table.refuse_unknown()
        return found

    def _read_catalogue(self, sources: Mapping[str, SourceSettings]) -> Catalogue:
        try:
            return read_catalogue(self._root.items("datasets"), sources)
        except InvalidSettingsError as error:
            self._root.problems.include(error.problems)
            return Catalogue(datasets={})

    def _read_links(self, table: Table) -> LinksSettings:
        keys: dict[str, LinkKey] = {}
        items = table.items("keys")
        if table.raw("keys") == []:
            table.note("keys", "must hold at least one key; leave it out to have one made")
        for index, item in enumerate(items):
            try:
                key = _read_link_key(read_secret(str(item), self._environ))
            except ValueError as error:
                table.problems.note((*table.path, "keys", index), str(error))
                continue
            if key.kid in keys:
                table.problems.note((*table.path, "keys", index), f"the key id {shown(key.kid)} is used twice")
            keys[key.kid] = key
        table.refuse_unknown()
        ring: LinkKeys = tuple(keys.values())
        return LinksSettings(keys=ring or None)

    def _read_postgres_url(self, table: Table, name: str) -> Secret | None:
        """Its text never appears in a problem: it may hold a password."""
        text = table.optional_text(name)
        if text is None:
            return None
        try:
            url = read_secret(text, self._environ)
        except ValueError as error:
            table.note(name, str(error))
            return None
        if not _POSTGRES_URL.match(url) or "\0" in url:
            table.note(name, "must be a PostgreSQL address: postgresql://user:password@host/name")
        return Secret(url)

    def _check_relations(self, settings: Settings) -> None:
        database, exports = settings.database, settings.exports
        note = self._root.problems.note
        if database.direct_url and not database.url:
            note(("database", "direct_url"), "needs database.url beside it")
        if exports.link_seconds > exports.package_days * SECONDS_PER_DAY:
            note(("exports", "link_seconds"), "must not be longer than exports.package_days")


def _read_api(table: Table) -> ApiSettings:
    default = ApiSettings()
    public_url = table.optional_text("public_url")
    if public_url and not _is_base_url(public_url):
        table.note("public_url", "must be an http or https address without query, fragment or password")
    settings = ApiSettings(
        host=table.text("host", default.host),
        port=table.whole("port", default.port, low=0, high=PORT_MAX),
        public_url=public_url.rstrip("/") if public_url else None,
    )
    table.refuse_unknown()
    return settings


def _read_worker(table: Table) -> WorkerSettings:
    default = WorkerSettings()
    settings = WorkerSettings(
        processes=table.whole("processes", default.processes, low=1, high=256),
        slots=table.whole("slots", default.slots, low=1, high=256),
        lease_seconds=table.number(
            "lease_seconds", default.lease_seconds, low=limits.LEASE_SECONDS_MIN, high=limits.LEASE_SECONDS_MAX
        ),
        shutdown_grace_seconds=table.number(
            "shutdown_grace_seconds", default.shutdown_grace_seconds, low=0, high=3_600
        ),
        queues=table.texts("queues"),
    )
    for queue in settings.queues:
        if len(queue) > limits.QUEUE_NAME_CHARS_MAX:
            table.note("queues", f"{shown(queue)} is longer than {limits.QUEUE_NAME_CHARS_MAX} characters")
    table.refuse_unknown()
    return settings


def _read_egress(table: Table) -> EgressSettings:
    allow_http = table.flag("allow_http", default=False)
    networks: list[Network] = []
    for text in table.texts("allowed_networks"):
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError as error:
            table.note("allowed_networks", f"{shown(text)} is not a network such as 10.1.0.0/16: {error}")
    ports = tuple(_read_port(item) for item in table.items("allowed_ports"))
    if 0 in ports:
        table.note("allowed_ports", f"must be whole numbers from 1 to {PORT_MAX}")
    table.refuse_unknown()
    default_ports = (443, 80) if allow_http else (443,)
    return EgressSettings(allowed_networks=tuple(networks), allow_http=allow_http, allowed_ports=ports or default_ports)


def _read_exports(table: Table) -> ExportsSettings:
    default = ExportsSettings()
    settings = ExportsSettings(
        package_days=table.whole("package_days", default.package_days, low=1, high=PACKAGE_DAYS_MAX),
        link_seconds=table.whole("link_seconds", default.link_seconds, low=60, high=limits.LINK_SECONDS_MAX),
    )
    table.refuse_unknown()
    return settings


def _read_link_key(text: str) -> LinkKey:
    """`kid:secret`. Raises ValueError that does not hold the secret."""
    kid, _, secret = text.partition(":")
    try:
        # Both alphabets are welcome: openssl writes '+' and '/', Python's token helpers write '-' and '_'.
        standard = secret.replace("-", "+").replace("_", "/").rstrip("=")
        decoded = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be written kid:secret, the secret in base64") from None
    return LinkKey(kid=kid, secret=decoded)


def _read_port(item: object) -> int:
    """0 stands for: not a port."""
    if isinstance(item, str):
        item = int(item) if re.fullmatch(r"[0-9]{1,5}", item, re.ASCII) else 0
    return item if isinstance(item, int) and not isinstance(item, bool) and 1 <= item <= PORT_MAX else 0


def _is_base_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text and not parts.query and not parts.fragment
    return plain and parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and "@" not in text
