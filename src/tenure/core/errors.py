"""Every way Tenure refuses or fails, as one tree.

    TenureError
    ├── InvalidInputError          the caller must change the request
    │   ├── InvalidRequestError    unknown dataset, column, filter, format; names the field
    │   ├── InvalidSettingsError   every wrong setting at once
    │   └── FormatCannotHoldError  more rows than the format can carry
    ├── RefusedError               well formed, not allowed now
    │   ├── NotAuthenticatedError
    │   ├── ForbiddenError         names the missing scope
    │   ├── NotFoundError          unknown and foreign ids answer alike
    │   ├── GoneError              was there, is no longer served
    │   ├── ExportActiveError      the tenant's one export slot is taken
    │   └── ConflictError          the thing is in a state that forbids this
    ├── LeaseLostError             the fence is no longer current: stop, write nothing
    ├── ExportError                an export could not be made; carries the phase
    │   ├── RowLimitExceededError
    │   ├── QueryTimeoutError
    │   ├── SourceUnavailableError
    │   ├── SourceQueryError
    │   └── PackageMismatchError   stored bytes differ from what was written
    ├── DeliveryError              a notification could not be sent
    │   ├── EgressRefusedError     the address is not one we may call
    │   ├── EndpointGoneError      the receiver said it wants no more (410)
    │   └── DeliveryFailedError    the receiver refused or could not be reached
    └── OperationError             the installation needs an operator
        ├── DatabaseUnavailableError
        ├── SchemaMismatchError
        ├── MigrationError
        └── EmbeddedPostgresError

`code` is stable: it is what the API, run records, webhooks and the command line show. `retryable` says whether the
same thing may work later. `what_to_do` is one sentence for the person who reads the error.
"""

from dataclasses import dataclass
from typing import ClassVar


class TenureError(Exception):
    """Something Tenure refused to do or could not do."""

    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    retryable: ClassVar[bool] = False
    what_to_do: ClassVar[str] = "Report this with the time and the id shown."


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """One wrong field: `pointer` is a JSON pointer (RFC 6901) or a settings name, `detail` a sentence."""

    pointer: str
    detail: str


class InvalidInputError(TenureError):
    """The input must change; `problems` names every wrong field."""

    code = "invalid_input"
    title = "Invalid input"
    what_to_do = "Correct the fields named and try again."

    def __init__(self, *problems: FieldProblem) -> None:
        super().__init__("; ".join(f"{problem.pointer}: {problem.detail}" for problem in problems))
        self.problems = problems


class InvalidRequestError(InvalidInputError):
    """The request asks for something the catalogue does not offer."""

    code = "invalid_request"
    title = "Invalid request"


class InvalidSettingsError(InvalidInputError):
    """The settings file, environment or flags hold wrong values."""

    code = "invalid_settings"
    title = "Invalid settings"
    what_to_do = "Correct the settings named; `tenure config check` shows them all."


class FormatCannotHoldError(InvalidInputError):
    """The chosen format cannot hold the rows asked for."""

    code = "format_cannot_hold"
    title = "The format cannot hold this export"
    what_to_do = "Choose another format or narrow the filters."


class RefusedError(TenureError):
    """Well formed, but not allowed."""


class NotAuthenticatedError(RefusedError):
    """No valid API key came with the request."""

    code = "not_authenticated"
    title = "Not authenticated"
    what_to_do = "Send a valid key: `Authorization: Bearer tnr_live_...`."


class ForbiddenError(RefusedError):
    """The key is valid but lacks a scope."""

    code = "forbidden"
    title = "Not permitted"
    what_to_do = "Use a key that holds the scope named."

    def __init__(self, scope: str) -> None:
        super().__init__(f"this needs the scope {scope}")
        self.scope = scope


class NotFoundError(RefusedError):
    """No such thing for this caller. Another tenant's id answers exactly like an unknown one."""

    code = "not_found"
    title = "Not found"
    what_to_do = "Check the id and the key used."

    def __init__(self, noun: str) -> None:
        super().__init__(f"no such {noun}")
        self.noun = noun


class GoneError(RefusedError):
    """It existed and is no longer served; the record stays."""

    code = "gone"
    title = "No longer available"
    what_to_do = "Ask for a new export."


class ExportActiveError(RefusedError):
    """The tenant already has an unfinished export, and the new request differs from it."""

    code = "export_active"
    title = "An export is already under way"
    retryable = True
    what_to_do = "Wait for the export linked, or cancel it."

    def __init__(self, export_id: object) -> None:
        super().__init__(f"export {export_id} is not finished yet")
        self.export_id = export_id


class ConflictError(RefusedError):
    """The thing is in a state that does not allow this."""

    code = "conflict"
    title = "Conflict"
    what_to_do = "Look at its present state first."


class LeaseLostError(TenureError):
    """Another attempt owns this job now: stop and write nothing more."""

    code = "lease_lost"
    title = "The lease is no longer yours"
    what_to_do = "Stop this run; a newer attempt owns the job, or it has ended."

    def __init__(self, job_id: object, attempt: int) -> None:
        super().__init__(f"job {job_id} attempt {attempt}: lease lost")
        self.job_id = job_id
        self.attempt = attempt


class ExportError(TenureError):
    """An export could not be made. `phase` is where it stopped: plan, read, write, publish."""

    code = "export_failed"
    title = "The export could not be made"
    phase: str = "read"

    def __init__(self, detail: str, *, phase: str | None = None) -> None:
        super().__init__(detail)
        if phase is not None:
            self.phase = phase


class RowLimitExceededError(ExportError):
    """The dataset holds more rows for this tenant than its row limit allows."""

    code = "row_limit_exceeded"
    title = "Too many rows"
    phase = "plan"
    what_to_do = "Narrow the filters, or ask the operator to raise the dataset's row limit."


class QueryTimeoutError(ExportError):
    """The source query ran longer than allowed and was cancelled on its server."""

    code = "query_timeout"
    title = "The source query took too long"
    retryable = True
    what_to_do = "It is tried again by itself; if it keeps failing, narrow the filters."


class SourceUnavailableError(ExportError):
    """The source database could not be reached or broke the connection."""

    code = "source_unavailable"
    title = "The source is not available"
    retryable = True
    what_to_do = "It is tried again by itself; the operator is told if it keeps failing."


class SourceQueryError(ExportError):
    """The source refused the dataset's query: the catalogue and the database disagree."""

    code = "source_query_failed"
    title = "The source refused the query"
    what_to_do = "The operator must compare the dataset's declaration with the source database."


class PackageMismatchError(ExportError):
    """What the object store holds differs from what was written."""

    code = "package_mismatch"
    title = "The stored files differ from the manifest"
    phase = "publish"
    retryable = True
    what_to_do = "It is tried again by itself; if it repeats, check the object store."


class DeliveryError(TenureError):
    """A notification could not be sent."""


class EgressRefusedError(DeliveryError):
    """The address is private, special or otherwise not one Tenure may call."""

    code = "egress_refused"
    title = "This address may not be called"
    what_to_do = "Give a public https address, or let the operator allow-list it."


class EndpointGoneError(DeliveryError):
    """The receiver answered 410 Gone: it wants no more notifications."""

    code = "endpoint_gone"
    title = "The receiver wants no more notifications"
    what_to_do = "Give a new address with the next export."


class DeliveryFailedError(DeliveryError):
    """The receiver refused the notification or could not be reached."""

    code = "delivery_failed"
    title = "The receiver did not take the notification"
    retryable = True
    what_to_do = "It is tried again by itself; check the receiver's log."

    def __init__(self, detail: str, *, status: int | None = None, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class OperationError(TenureError):
    """The installation itself needs attention."""


class DatabaseUnavailableError(OperationError):
    """Tenure's own database cannot be reached."""

    code = "database_unavailable"
    title = "The database is not available"
    retryable = True
    what_to_do = "Try again shortly; the operator must see why PostgreSQL does not answer."


class SchemaMismatchError(OperationError):
    """The database schema is older or newer than this version of Tenure understands."""

    code = "schema_mismatch"
    title = "Database schema and program do not match"
    what_to_do = "Older database: run `tenure migrate`. Newer database: upgrade Tenure."


class MigrationError(OperationError):
    """A migration could not be applied; nothing of it remains."""

    code = "migration_failed"
    title = "Migration failed"
    what_to_do = "Mend what the message names, then run `tenure migrate` again."


class EmbeddedPostgresError(OperationError):
    """The embedded PostgreSQL could not be found, prepared, started or stopped."""

    code = "embedded_postgres"
    title = "The embedded PostgreSQL cannot run"
    what_to_do = "Follow the hint, or set TENURE_DATABASE_URL to use a server of your own."
