-- settle: end runs as core.settlement decided. Guard: running under exactly this (attempt, lease_token).
-- Writes the run record and the lane event with it; the rows returned are those that were not stale.
WITH report AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(settlements)s::jsonb) AS report (
        job_id uuid, attempt integer, lease_token uuid, state text, outcome text, wait_seconds double precision,
        failed integer, crashed integer, released integer, error_class text, error_code text, error_message text,
        error_phase text, traceback text, pid integer, exit_signal smallint, peak_memory_bytes bigint, log_tail text,
        result jsonb)
), current AS MATERIALIZED (
    -- Whoever locks the row first wins; a later report finds another state or another token and is stale.
    SELECT job.id, job.lease_owner, job.claimed_at, job.queued_at, job.charged_seconds, report.*,
           coalesce(%(now)s, clock_timestamp()) AS ended_at,
           -- A cancel asked for during the run beats trying again; it does not beat a success.
           CASE WHEN job.cancel_requested_at IS NOT NULL AND report.state IN ('queued', 'retry_wait')
                THEN 'cancelled' ELSE report.state END AS next_state
      FROM tenure.jobs AS job
      JOIN report ON report.job_id = job.id
     WHERE job.state = 'running' AND job.attempt = report.attempt AND job.lease_token = report.lease_token
     ORDER BY job.id FOR UPDATE OF job
), ended AS (
    UPDATE tenure.jobs AS job
       SET state = current.next_state, lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL,
           failures = job.failures + current.failed, crashes = job.crashes + current.crashed,
           releases = job.releases + current.released, lapses = 0,
           not_before = CASE WHEN current.next_state = 'retry_wait'
               THEN current.ended_at + make_interval(secs => current.wait_seconds) END,
           seq = CASE WHEN current.next_state = 'queued' THEN nextval('tenure.job_seq') ELSE job.seq END,
           queued_at = CASE WHEN current.next_state = 'queued' THEN current.ended_at ELSE job.queued_at END,
           finished_at = CASE WHEN current.next_state IN ('succeeded', 'dead', 'quarantined', 'cancelled')
               THEN current.ended_at END
      FROM current WHERE job.id = current.id
    RETURNING job.id, job.tenant_id, job.queue, job.kind, job.state, job.attempt, job.priority, job.seq,
              current.ended_at, current.claimed_at, current.charged_seconds, current.lease_owner,
              current.queued_at AS waiting_since, current.pid, current.outcome, current.error_class,
              current.error_code, current.error_message, current.error_phase, current.traceback,
              current.exit_signal, current.peak_memory_bytes, current.log_tail, current.result
), recorded AS (
    INSERT INTO tenure.runs (job_id, attempt, tenant_id, queue, kind, worker_id, host, pid, queued_at, claimed_at,
                             finished_at, outcome, error_class, error_code, error_message, error_phase, traceback,
                             exit_signal, peak_memory_bytes, log_tail, result)
    SELECT id, attempt, tenant_id, queue, kind, lease_owner, %(host)s, pid, waiting_since, claimed_at, ended_at,
           outcome, error_class, error_code, error_message, error_phase, traceback, exit_signal, peak_memory_bytes,
           log_tail, result
      FROM ended
), told AS (
    INSERT INTO tenure.lane_events (queue, tenant_id, arrived, head_priority, head_seq, settled, used_seconds,
                                    charged_seconds)
    SELECT queue, tenant_id, count(*) FILTER (WHERE state = 'queued'),
           min(priority) FILTER (WHERE state = 'queued'), min(seq) FILTER (WHERE state = 'queued') - 1, count(*),
           sum(greatest(extract(epoch FROM ended_at - claimed_at), 0)), sum(charged_seconds)
      FROM ended GROUP BY queue, tenant_id
)
SELECT id, tenant_id, kind, attempt, state FROM ended;
