-- checkpoint: keep what the next attempt resumes from. Guard: the fence is current, and stays so until this commits: the
-- row is held against settle and reap. A row somebody else holds is skipped and missing from the answer.
WITH current AS MATERIALIZED (
    SELECT job.id, job.attempt, report.value
      FROM jsonb_to_recordset(%(reports)s::jsonb) AS report (
               job_id uuid, attempt integer, lease_token uuid, value jsonb)
      JOIN tenure.jobs AS job ON job.id = report.job_id AND job.state = 'running' AND job.attempt = report.attempt
                             AND job.lease_token = report.lease_token
     ORDER BY job.id FOR SHARE OF job SKIP LOCKED
)
INSERT INTO tenure.checkpoints AS checkpoint (job_id, attempt, value, updated_at)
SELECT id, attempt, value, coalesce(%(now)s, clock_timestamp()) FROM current
    ON CONFLICT (job_id) DO UPDATE
   SET attempt = excluded.attempt, value = excluded.value, updated_at = excluded.updated_at
RETURNING job_id;
