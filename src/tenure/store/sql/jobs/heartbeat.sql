-- heartbeat: extend leases. Guard: running under this fence and not lapsed, judged by `clock_timestamp()` once the lock
-- is ours, so a statement that was held up revives nothing. A fence missing from the answer is lost; a row that
-- somebody else holds is answered with null: one long transaction must not cost the worker its other leases.
WITH held AS MATERIALIZED (
    SELECT * FROM unnest(%(job_ids)b::uuid[], %(attempts)b::integer[], %(lease_tokens)b::uuid[])
        AS held (job_id, attempt, lease_token)
), locked AS MATERIALIZED (
    SELECT job.id FROM tenure.jobs AS job JOIN held ON job.id = held.job_id
     WHERE job.state = 'running' AND job.attempt = held.attempt AND job.lease_token = held.lease_token
     ORDER BY job.id FOR NO KEY UPDATE OF job SKIP LOCKED
), extended AS (
    UPDATE tenure.jobs AS job
       SET lease_expires_at = coalesce(%(now)s, clock_timestamp()) + make_interval(secs => job.lease_seconds)
      FROM locked
     WHERE job.id = locked.id AND job.lease_expires_at > coalesce(%(now)s, clock_timestamp())
    RETURNING job.id, job.cancel_requested_at IS NOT NULL AS cancel_requested
)
SELECT id, cancel_requested FROM extended
UNION ALL
SELECT job.id, NULL
  FROM tenure.jobs AS job JOIN held ON job.id = held.job_id
 WHERE job.state = 'running' AND job.attempt = held.attempt AND job.lease_token = held.lease_token
   AND NOT EXISTS (SELECT FROM locked WHERE locked.id = job.id);
