"""What `tenure up` and `tenure demo` share: settings, database, sample where wanted, processes, in that order."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tenure.cli.sample import SAMPLE_CONFIG, SampleFacts, ensure_sample
from tenure.core.ids import TenantId
from tenure.wiring.settings import Settings
from tenure.wiring.up import FirstKeys, Installation, RunningDatabase, choose_port, prepare, running_database

DEFAULT_PORT = 8080
DEFAULT_TENANT = "first-tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run. `config` None: the tenure.toml found, else the sample product."""

    config: Path | None = None
    port: int | None = None
    workers: int | None = None
    tenant: str | None = None
    sample: bool = False
    """The sample product, whatever tenure.toml lies around."""
    data_dir: Path | None = None
    lease_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningInstallation:
    """Everything that runs, and what a person needs to use it."""

    settings: Settings
    installation: Installation
    database: RunningDatabase
    keys: FirstKeys
    sample: SampleFacts | None
    """The sample product; None where the installation has its own sources."""

    def watch(self) -> None:
        """Start again what ended by itself."""
        self.database.watch()
        self.installation.watch()

    def facts(self) -> dict[str, str]:
        url = self.installation.api_url
        return {
            "API": url,
            "Console": f"{url}/console",
            f"Tenant key ({self.keys.tenant_id})": self.keys.tenant,
            "Operator key": self.keys.operator,
            "Data": str(self.settings.data_dir),
            "Logs": str(self.installation.log_dir),
        }


@contextlib.contextmanager
def running_installation(
    plan: Plan, environ: Mapping[str, str], *, say: Callable[[str], None]
) -> Iterator[RunningInstallation]:
    """Start everything, and stop it at the end of the block."""
    own_config = None if plan.sample else _own_config(plan, environ)
    data_dir, given = _where(plan, environ, own_config)
    with running_database(data_dir, environ, given=given) as database:
        say("PostgreSQL is the one you named." if given else f"PostgreSQL runs, with its data in {data_dir}.")
        environ = {**environ, "TENURE_DATABASE_URL": database.url, "TENURE_DATA_DIR": str(data_dir)}
        sample = None if own_config is not None else _sample(database.url, say)
        if sample is not None:
            environ |= {"TENURE_CONFIG": str(SAMPLE_CONFIG), "PRODUCT_DATABASE_URL": sample.reader_url}
        settings = _settings(plan, environ, own_config, say)
        first_tenant = sample.big_tenant if sample is not None else TenantId(DEFAULT_TENANT)
        keys = prepare(settings, TenantId(plan.tenant) if plan.tenant else first_tenant)
        if plan.tenant is not None and plan.tenant != keys.tenant_id:
            say(f"The first key is {keys.tenant_id}'s. For another: tenure keys create --tenant {plan.tenant}")
        with Installation(settings, _child_environ(settings, environ)) as installation:
            say(f"API and {settings.worker.processes} workers run.")
            yield RunningInstallation(
                settings=settings, installation=installation, keys=keys, sample=sample, database=database
            )


def _own_config(plan: Plan, environ: Mapping[str, str]) -> Path | None:
    if plan.config is not None or environ.get("TENURE_CONFIG"):
        return plan.config or Path(environ["TENURE_CONFIG"])
    found = Path("tenure.toml")
    return found if found.exists() else None


def _where(plan: Plan, environ: Mapping[str, str], own_config: Path | None) -> tuple[Path, str | None]:
    """Data directory and database, if one is named: needed before the settings can be complete."""
    if own_config is None:
        data_dir = plan.data_dir or Path(environ.get("TENURE_DATA_DIR") or ".tenure")
        return data_dir.absolute(), environ.get("TENURE_DATABASE_URL") or None
    settings = Settings.load(own_config, environ, {})
    url = settings.database.url
    return (plan.data_dir or settings.data_dir).absolute(), url.text if url is not None else None


def _sample(database_url: str, say: Callable[[str], None]) -> SampleFacts:
    facts = ensure_sample(database_url)
    say(f"A sample product database has {facts.rows:,} rows of {facts.tenants} tenants.")
    return facts


def _settings(plan: Plan, environ: Mapping[str, str], own_config: Path | None, say: Callable[[str], None]) -> Settings:
    flags = {"worker.processes": plan.workers, "worker.lease_seconds": plan.lease_seconds}
    settings = Settings.load(own_config, environ, flags)
    fixed = plan.port is not None or settings.api.port not in {0, DEFAULT_PORT}
    wanted = plan.port or settings.api.port
    port = choose_port(settings.api.host, wanted, fixed=fixed)
    if wanted not in {0, port}:
        say(f"Port {wanted} is taken; the API listens on {port}.")
    return Settings.load(own_config, environ, {**flags, "api.port": port})


def _child_environ(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """What the processes started here must agree on, whatever flags this one was given."""
    return {
        **environ,
        **({"TENURE_CONFIG": str(settings.file.absolute())} if settings.file else {}),
        "TENURE_API_PORT": str(settings.api.port),
        "TENURE_WORKER_PROCESSES": str(settings.worker.processes),
        "TENURE_WORKER_LEASE_SECONDS": str(settings.worker.lease_seconds),
        "TENURE_DATA_DIR": str(settings.data_dir),
    }
