"""What PostgreSQL reports, as the failures an export can have.

Messages for people name the dataset, the SQLSTATE and its name, never PostgreSQL's own words where those may quote a
row's values. The driver's error stays as the cause.
"""

import psycopg

from tenure.core.dataset import Dataset
from tenure.core.errors import ExportError, QueryTimeoutError, SourceQueryError, SourceUnavailableError

QUERY_CANCELED = "57014"
TRANSACTION_TIMEOUT = "25P04"

_TRANSIENT_CLASSES = frozenset({"08", "40", "53", "57", "58"})
"""Connection, rollback (a standby's recovery conflict), resources, operator's intervention, system error."""
_TRANSIENT_STATES = frozenset({"25P03", "55P03"})
"""Idle in transaction too long; a lock that was not to be had."""
_SCHEMA_CLASS = "42"
"""Syntax and access rules: the message names columns and tables, never values of rows."""
_BAD_VALUE = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.CannotCoerce)
"""Data exceptions, a domain's constraints, no such cast."""


def failure_of(error: psycopg.Error, *, dataset: Dataset, seconds: float, phase: str) -> ExportError:
    """`seconds` is how long the statement ran. The caller raises the result from `error`."""
    failure = _failure_of(error, dataset.name, seconds, dataset.query_timeout_seconds)
    failure.phase = phase
    return failure


def is_bad_value(error: Exception) -> bool:
    """Whether a probing cast failed because of the value it was given."""
    return isinstance(error, (*_BAD_VALUE, UnicodeError))


def _failure_of(error: psycopg.Error, dataset: str, seconds: float, limit_seconds: float) -> ExportError:
    state = error.sqlstate
    if state == TRANSACTION_TIMEOUT or (state == QUERY_CANCELED and seconds >= limit_seconds):
        return QueryTimeoutError(f'dataset "{dataset}": the query ran past its limit of {limit_seconds:g} s')
    if state == QUERY_CANCELED:
        return QueryTimeoutError(f'dataset "{dataset}": the query was cancelled on its server after {seconds:.1f} s')
    if state is None:
        return SourceUnavailableError(f'dataset "{dataset}": the connection to the source broke')
    if state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_STATES:
        return SourceUnavailableError(f'dataset "{dataset}": the source gave up ({_named(error)})')
    return SourceQueryError(f'dataset "{dataset}": the source refused the query ({_named(error)})')


def _named(error: psycopg.Error) -> str:
    text = f"SQLSTATE {error.sqlstate}, {type(error).__name__}"
    if (error.sqlstate or "").startswith(_SCHEMA_CLASS) and error.diag.message_primary:
        text += f": {error.diag.message_primary}"
    return text
