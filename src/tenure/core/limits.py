"""Every bound in one place. Units are the last word of the name."""

ARGS_BYTES_MAX = 256 * 1024
"""Largest encoded `args` of a job."""
RESULT_BYTES_MAX = 1024 * 1024
"""Largest encoded result a run may report; a larger one fails the run with `result_too_large`."""
CHECKPOINT_BYTES_MAX = 256 * 1024
TRACEBACK_CHARS_MAX = 16_000
MESSAGE_CHARS_MAX = 2_000
LOG_TAIL_LINES_MAX = 50
CHILD_FRAME_BYTES_MAX = 8 * 1024 * 1024
"""Largest message between a worker and its child process."""

CLAIM_COUNT_MAX = 1_000
SETTLE_COUNT_MAX = 1_000
REAP_COUNT_MAX = 200
PROMOTE_COUNT_MAX = 1_000

QUEUE_NAME_CHARS_MAX = 64
TENANT_ID_CHARS_MAX = 100

CRASHES_MAX_DEFAULT = 3
LEASE_SECONDS_DEFAULT = 60.0
LEASE_SECONDS_MIN = 1.0
LEASE_SECONDS_MAX = 3_600.0
LAPSE_BACKOFF_SECONDS = 30.0
"""Base wait from the second lapse in a row on; doubles with each further one, up to the cap below."""
LAPSE_BACKOFF_SECONDS_MAX = 900.0
POLL_SECONDS = 5.0
"""Floor of the doorbells: with every hint dead, work still starts within this."""
REAP_SECONDS = 2.0
HEARTBEATS_PER_LEASE = 3

REQUEST_BYTES_MAX = 64 * 1024
FILTERS_MAX = 32
FILTER_VALUES_MAX = 1_000
FILTER_VALUE_CHARS_MAX = 1_000
DATASETS_PER_EXPORT_MAX = 50
COLUMNS_MAX = 1_600
"""PostgreSQL's own limit of columns in a table."""
ROW_LIMIT_DEFAULT = 10_000_000
QUERY_TIMEOUT_SECONDS_DEFAULT = 120.0
PACKAGE_DAYS_DEFAULT = 7
LINK_SECONDS_DEFAULT = 3_600
LINK_SECONDS_MAX = 7 * 24 * 3_600
LIST_COUNT_MAX = 200

WAITING_COUNT_MAX = 1_000
"""Where counting of waiting jobs stops: an answer for people must not cost more with a longer backlog."""
RIVAL_COUNT_MAX = 1_000
"""Lanes that an answer to "why" looks at, below their cap and beyond it each."""
RUNNING_COUNT_MAX = 10_000
"""Running jobs of a queue that an answer for people looks at."""
ATTEMPT_COUNT_MAX = 1_000
"""Newest attempts of a job in its timeline."""
SHARE_COUNT_MAX = 10_000
"""Rows of a fairness report, one for each queue and tenant."""
WORKER_FRESH_SECONDS = 30.0
"""A worker that was not heard of for longer is taken for gone when people ask. No lease is judged by it."""
