-- The job engine, the export records and what stands around them.

CREATE TABLE tenure.tenants (
    id          text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 100),
    settings    jsonb NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE tenure.api_keys (
    id             text COLLATE "C" PRIMARY KEY,
    tenant_id      text COLLATE "C" REFERENCES tenure.tenants (id),  -- null: an operator's key
    name           text NOT NULL,
    secret_sha256  bytea NOT NULL CHECK (length(secret_sha256) = 32),
    scopes         text[] NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz,
    revoked_at     timestamptz
);

CREATE TABLE tenure.audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor      text NOT NULL,
    tenant_id  text,
    action     text NOT NULL,
    subject    text NOT NULL,
    detail     jsonb NOT NULL DEFAULT '{}'
);

-- ---------------------------------------------------------------- jobs

CREATE SEQUENCE tenure.job_seq;

CREATE TABLE tenure.jobs (
    id                   uuid PRIMARY KEY,
    tenant_id            text COLLATE "C" NOT NULL,
    queue                text COLLATE "C" NOT NULL,
    kind                 text COLLATE "C" NOT NULL,
    args                 jsonb NOT NULL,
    state                text COLLATE "C" NOT NULL,
    priority             smallint NOT NULL DEFAULT 0,
    seq                  bigint NOT NULL DEFAULT nextval('tenure.job_seq'),
    attempt              integer NOT NULL DEFAULT 0,
    failures             integer NOT NULL DEFAULT 0,
    max_attempts         integer NOT NULL CHECK (max_attempts >= 1),
    crashes              integer NOT NULL DEFAULT 0,
    max_crashes          integer NOT NULL CHECK (max_crashes >= 1),
    lapses               integer NOT NULL DEFAULT 0,  -- in a row; any other end sets it to 0
    releases             integer NOT NULL DEFAULT 0,
    lease_seconds        double precision NOT NULL CHECK (lease_seconds > 0),
    lease_owner          uuid,
    lease_token          uuid,
    lease_expires_at     timestamptz,
    claimed_at           timestamptz,
    charged_seconds      double precision NOT NULL DEFAULT 0,  -- what the claim charged to the lane
    not_before           timestamptz,
    start_deadline       timestamptz,
    unique_key           text COLLATE "C",
    cancel_requested_at  timestamptz,
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    queued_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at          timestamptz,
    CONSTRAINT state_known CHECK (state IN
        ('scheduled', 'queued', 'running', 'retry_wait', 'succeeded', 'dead', 'quarantined', 'cancelled')),
    CONSTRAINT running_means_leased CHECK (
        (state = 'running') = (lease_owner IS NOT NULL AND lease_token IS NOT NULL AND lease_expires_at IS NOT NULL)
        AND (state = 'running' OR (lease_owner IS NULL AND lease_token IS NULL AND lease_expires_at IS NULL))),
    CONSTRAINT terminal_means_finished CHECK (
        (state IN ('succeeded', 'dead', 'quarantined', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT waiting_has_a_time CHECK (state NOT IN ('scheduled', 'retry_wait') OR not_before IS NOT NULL)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX jobs_ready ON tenure.jobs (queue, tenant_id, priority, seq) WHERE state = 'queued';
CREATE INDEX jobs_due ON tenure.jobs (not_before) WHERE state IN ('scheduled', 'retry_wait');
-- Not on the expiry itself: a heartbeat then changes no index, and there are never more rows here than slots.
CREATE INDEX jobs_running ON tenure.jobs (queue) WHERE state = 'running';
CREATE INDEX jobs_start_deadline ON tenure.jobs (start_deadline)
    WHERE state = 'queued' AND attempt = 0 AND start_deadline IS NOT NULL;
CREATE INDEX jobs_of_tenant ON tenure.jobs (tenant_id, id);
CREATE UNIQUE INDEX jobs_unique_key ON tenure.jobs (tenant_id, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'queued', 'running', 'retry_wait');

-- Second line of defence: core/lifecycle.py is the table, a test compares the two. The conditions are plain
-- expressions, so a legal move costs no function call.
CREATE FUNCTION tenure.refuse_job_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'job %: cannot begin as %', NEW.id, NEW.state USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RAISE EXCEPTION 'job %: % (attempt %) cannot become % (attempt %)', OLD.id, OLD.state, OLD.attempt, NEW.state,
        NEW.attempt USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER refuse_illegal_begin BEFORE INSERT ON tenure.jobs FOR EACH ROW
    WHEN (NEW.state NOT IN ('scheduled', 'queued') OR NEW.attempt <> 0)
    EXECUTE FUNCTION tenure.refuse_job_move();

CREATE TRIGGER refuse_illegal_move BEFORE UPDATE ON tenure.jobs FOR EACH ROW
    WHEN ((OLD.state <> NEW.state AND OLD.state || '>' || NEW.state <> ALL (ARRAY[
            'scheduled>queued', 'retry_wait>queued', 'queued>running',
            'running>succeeded', 'running>retry_wait', 'running>dead', 'running>queued', 'running>quarantined',
            'running>cancelled', 'queued>cancelled', 'scheduled>cancelled', 'retry_wait>cancelled',
            'queued>dead', 'dead>queued', 'quarantined>queued']))
        OR NEW.attempt <> OLD.attempt + CASE WHEN OLD.state = 'queued' AND NEW.state = 'running' THEN 1 ELSE 0 END)
    EXECUTE FUNCTION tenure.refuse_job_move();

CREATE TABLE tenure.job_progress (
    job_id      uuid PRIMARY KEY REFERENCES tenure.jobs (id) ON DELETE CASCADE,
    attempt     integer NOT NULL,
    done        bigint NOT NULL,
    total       bigint,
    bytes_done  bigint NOT NULL DEFAULT 0,
    phase       text,
    updated_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tenure.checkpoints (
    job_id      uuid PRIMARY KEY REFERENCES tenure.jobs (id) ON DELETE CASCADE,
    attempt     integer NOT NULL,
    value       jsonb NOT NULL,
    updated_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- ---------------------------------------------------------------- runs

CREATE TABLE tenure.runs (
    job_id             uuid NOT NULL,
    attempt            integer NOT NULL,
    tenant_id          text COLLATE "C" NOT NULL,
    queue              text COLLATE "C" NOT NULL,
    kind               text COLLATE "C" NOT NULL,
    worker_id          uuid,
    host               text,
    pid                integer,
    queued_at          timestamptz NOT NULL,
    claimed_at         timestamptz NOT NULL,
    finished_at        timestamptz NOT NULL,
    outcome            text COLLATE "C" NOT NULL CHECK (outcome IN
                       ('succeeded', 'failed', 'lease_expired', 'released', 'cancelled')),
    error_class        text,
    error_code         text,
    error_message      text,
    error_phase        text,
    traceback          text,
    exit_signal        smallint,
    peak_memory_bytes  bigint,
    log_tail           text,
    result             jsonb,
    PRIMARY KEY (job_id, attempt, finished_at)
) PARTITION BY RANGE (finished_at);

CREATE INDEX runs_of_tenant ON tenure.runs (tenant_id, finished_at);
-- Append-only, so in the order of time: a few bytes per block find a window of it.
CREATE INDEX runs_finished ON tenure.runs USING brin (finished_at) WITH (autosummarize = on);

-- Catches what no monthly partition takes, so that a run can always be recorded.
CREATE TABLE tenure.runs_rest PARTITION OF tenure.runs DEFAULT;

CREATE FUNCTION tenure.refuse_run_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'run records are append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON tenure.runs FOR EACH ROW
    EXECUTE FUNCTION tenure.refuse_run_change();

-- Partitions of the running UTC month and the months after it; months are dropped whole by retention.
CREATE FUNCTION tenure.create_run_partitions(months_ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    month date;
    made integer := 0;
BEGIN
    FOR month IN SELECT generate_series(date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC'),
            date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + make_interval(months => months_ahead),
            interval '1 month') LOOP
        IF to_regclass(format('tenure.runs_%s', to_char(month, 'YYYY_MM'))) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE TABLE tenure.%I PARTITION OF tenure.runs FOR VALUES FROM (%L) TO (%L)',
                    'runs_' || to_char(month, 'YYYY_MM'), month || ' 00:00:00+00',
                    (month + interval '1 month')::date || ' 00:00:00+00');
                made := made + 1;
            EXCEPTION
                -- Runs of this month already went to runs_rest, or another process was faster: the months after it
                -- must still be made.
                WHEN check_violation OR duplicate_table THEN NULL;
            END;
        END IF;
    END LOOP;
    RETURN made;
END $$;

SELECT tenure.create_run_partitions(2);

-- ---------------------------------------------------------------- queues and lanes

CREATE TABLE tenure.queues (
    name      text COLLATE "C" PRIMARY KEY,
    slots     integer CHECK (slots >= 0),  -- cluster-wide concurrency; null: as many as the workers have
    headroom  integer NOT NULL DEFAULT 0 CHECK (headroom >= 0),
    paused    boolean NOT NULL DEFAULT false,
    running   integer NOT NULL DEFAULT 0,
    floor     double precision NOT NULL DEFAULT 0  -- virtual time at which a waking lane starts
) WITH (fillfactor = 10);

CREATE TABLE tenure.lanes (
    queue             text COLLATE "C" NOT NULL,  -- no foreign key: it would be checked at every claim, lane by lane
    tenant_id         text COLLATE "C" NOT NULL,
    weight            double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
    cap               integer NOT NULL DEFAULT 1000000 CHECK (cap >= 0),
    ceiling           integer NOT NULL DEFAULT 1000000 CHECK (ceiling >= 0),
    paused            boolean NOT NULL DEFAULT false,
    running           integer NOT NULL DEFAULT 0,
    virtual_time      double precision NOT NULL DEFAULT 0,
    estimate_seconds  double precision NOT NULL DEFAULT 1 CHECK (estimate_seconds > 0),
    backlogged        boolean NOT NULL DEFAULT false,
    head_priority     smallint NOT NULL DEFAULT -32768,  -- scan head: everything ready lies after it
    head_seq          bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, tenant_id)
) WITH (fillfactor = 50);

CREATE INDEX lanes_within_cap ON tenure.lanes (queue, virtual_time, tenant_id)
    WHERE backlogged AND NOT paused AND running < cap AND running < ceiling;
CREATE INDEX lanes_beyond_cap ON tenure.lanes (queue, virtual_time, tenant_id)
    WHERE backlogged AND NOT paused AND running >= cap AND running < ceiling;

-- Producers and settlers only append here; the next claim folds and deletes.
CREATE TABLE tenure.lane_events (
    id               bigint GENERATED ALWAYS AS IDENTITY,
    queue            text COLLATE "C" NOT NULL,
    tenant_id        text COLLATE "C" NOT NULL,
    arrived          integer NOT NULL DEFAULT 0,
    head_priority    smallint,  -- where the scan must go back to
    head_seq         bigint,
    settled          integer NOT NULL DEFAULT 0,
    used_seconds     double precision NOT NULL DEFAULT 0,
    charged_seconds  double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, id)
);

CREATE TABLE tenure.workers (
    id            uuid PRIMARY KEY,
    host          text NOT NULL,
    pid           integer NOT NULL,
    queues        text[] NOT NULL,
    slots         integer NOT NULL,
    version       text NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_beat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at    timestamptz
);

CREATE INDEX workers_present ON tenure.workers (last_beat_at) WHERE stopped_at IS NULL;

-- ---------------------------------------------------------------- exports

CREATE TABLE tenure.exports (
    id               uuid PRIMARY KEY,  -- also the id of the job that carries it
    tenant_id        text COLLATE "C" NOT NULL REFERENCES tenure.tenants (id),
    requested_by     text NOT NULL,
    export_order     jsonb NOT NULL,
    fingerprint      bytea NOT NULL,  -- SHA-256 of the request: tells the identical second request
    cutoff           timestamptz NOT NULL,
    outcome          text COLLATE "C" CHECK (outcome IN ('succeeded', 'failed', 'cancelled')),
    failure_code     text,
    failure_summary  text,
    failure_phase    text,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at      timestamptz,
    CONSTRAINT ended_together CHECK ((outcome IS NULL) = (finished_at IS NULL)),
    CONSTRAINT failure_has_a_code CHECK ((outcome IS NOT DISTINCT FROM 'failed') = (failure_code IS NOT NULL))
);

CREATE UNIQUE INDEX exports_one_unfinished ON tenure.exports (tenant_id) WHERE outcome IS NULL;
CREATE INDEX exports_of_tenant ON tenure.exports (tenant_id, id DESC);

CREATE TABLE tenure.packages (
    export_id        uuid PRIMARY KEY REFERENCES tenure.exports (id),
    tenant_id        text COLLATE "C" NOT NULL,
    manifest_key     text NOT NULL,
    manifest_sha256  text NOT NULL,
    manifest_bytes   bigint NOT NULL,
    rows             bigint NOT NULL,
    bytes            bigint NOT NULL,
    files            jsonb NOT NULL,
    published_at     timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    gone_at          timestamptz
);

CREATE INDEX packages_expiring ON tenure.packages (expires_at) WHERE gone_at IS NULL;

CREATE TABLE tenure.deliveries (
    id            uuid PRIMARY KEY,  -- also the id of the job that carries it
    export_id     uuid NOT NULL REFERENCES tenure.exports (id),
    tenant_id     text COLLATE "C" NOT NULL,
    channel       text COLLATE "C" NOT NULL,
    url           text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_code     text,
    delivered_at  timestamptz
);

CREATE INDEX deliveries_of_export ON tenure.deliveries (export_id);

CREATE TABLE tenure.downloads (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    tenant_id      text COLLATE "C" NOT NULL,
    export_id      uuid NOT NULL,
    file           text NOT NULL,
    requested_by   text NOT NULL,
    bytes_sent     bigint NOT NULL,
    complete       boolean NOT NULL
);
