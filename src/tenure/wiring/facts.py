"""Words for the engine's facts: one line of JSON each, on standard error. No data, no secrets."""

import logging
import sys

import msgspec

from tenure.engine.events import Fact, FactName

LOGGER = logging.getLogger("tenure")
_ALARMS = frozenset(
    {FactName.SETTLE_FAILED, FactName.LANE_LOST_SIGHT, FactName.LANE_DRIFTED, FactName.HOUSEKEEPING_FAILED}
)
_WARNINGS = frozenset(
    {FactName.LEASE_LAPSED, FactName.LEASE_LOST, FactName.RUN_STALE, FactName.DATABASE_AWAY, FactName.JOB_EXPIRED}
)


class JsonLines(logging.Formatter):
    """`{"time", "level", "message", ...}`; facts bring their own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "process": record.process,
            "message": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def configure_logging(level: str) -> None:
    """Log to standard error in JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def log_fact(fact: Fact) -> None:
    """The observer of a worker."""
    level = logging.ERROR if fact.name in _ALARMS else logging.WARNING if fact.name in _WARNINGS else logging.INFO
    facts = {
        name: value
        for name, value in (
            ("job_id", fact.job_id and str(fact.job_id)),
            ("tenant_id", fact.tenant_id),
            ("kind", fact.kind),
            ("attempt", fact.attempt),
            ("detail", fact.detail),
        )
        if value is not None
    }
    LOGGER.log(level, fact.name, extra={"facts": facts})
