-- reap: take back lapsed leases. Guard: still running and lapsed by the database's clock under the row's lock; rows
-- another reaper holds are skipped. Only kinds this process knows. Rules: core.settlement.lapse_event.
WITH lapsed AS MATERIALIZED (
    SELECT id, attempt, lease_owner, claimed_at, queued_at, charged_seconds,
           coalesce(%(now)s, clock_timestamp()) AS ended_at, crashes + 1 AS crashes, lapses + 1 AS lapses,
           CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                WHEN crashes + 1 >= max_crashes THEN 'quarantined'
                WHEN lapses + 1 >= 2 THEN 'retry_wait'
                ELSE 'queued' END AS next_state
      FROM tenure.jobs
     WHERE state = 'running' AND lease_expires_at < coalesce(%(now)s, clock_timestamp()) AND kind = ANY (%(kinds)s)
     ORDER BY lease_expires_at LIMIT %(count)s FOR UPDATE SKIP LOCKED
), ended AS (
    UPDATE tenure.jobs AS job
       SET state = lapsed.next_state, lease_owner = NULL, lease_token = NULL, lease_expires_at = NULL,
           crashes = lapsed.crashes, lapses = lapsed.lapses,
           not_before = CASE WHEN lapsed.next_state = 'retry_wait' THEN lapsed.ended_at + make_interval(secs =>
               least(%(backoff_seconds)s * 2.0 ^ least(lapsed.lapses - 2, 32), %(backoff_seconds_max)s)) END,
           seq = CASE WHEN lapsed.next_state = 'queued' THEN nextval('tenure.job_seq') ELSE job.seq END,
           queued_at = CASE WHEN lapsed.next_state = 'queued' THEN lapsed.ended_at ELSE job.queued_at END,
           finished_at = CASE WHEN lapsed.next_state IN ('quarantined', 'cancelled') THEN lapsed.ended_at END
      FROM lapsed WHERE job.id = lapsed.id
    RETURNING job.id, job.tenant_id, job.queue, job.kind, job.state, job.attempt, job.priority, job.seq,
              lapsed.ended_at, lapsed.claimed_at, lapsed.charged_seconds
), recorded AS (
    INSERT INTO tenure.runs (job_id, attempt, tenant_id, queue, kind, worker_id, host, pid, queued_at, claimed_at,
                             finished_at, outcome, error_class, error_code, error_message)
    SELECT ended.id, ended.attempt, ended.tenant_id, ended.queue, ended.kind, lapsed.lease_owner, worker.host,
           worker.pid, lapsed.queued_at, lapsed.claimed_at, lapsed.ended_at, 'lease_expired', 'LeaseExpired',
           'lease_expired', 'the worker stopped renewing its lease'
      FROM ended JOIN lapsed ON lapsed.id = ended.id LEFT JOIN tenure.workers AS worker
        ON worker.id = lapsed.lease_owner
), told AS (
    INSERT INTO tenure.lane_events (queue, tenant_id, arrived, head_priority, head_seq, settled, used_seconds,
                                    charged_seconds)
    SELECT queue, tenant_id, count(*) FILTER (WHERE state = 'queued'),
           min(priority) FILTER (WHERE state = 'queued'), min(seq) FILTER (WHERE state = 'queued') - 1, count(*),
           sum(greatest(extract(epoch FROM ended_at - claimed_at), 0)), sum(charged_seconds)
      FROM ended GROUP BY queue, tenant_id
)
SELECT id, tenant_id, kind, attempt, state, queue FROM ended;
