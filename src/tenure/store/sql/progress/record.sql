-- record: keep the newest progress of running jobs. Guard: the fence is current, and stays so until this commits: the
-- row is held against settle and reap. A row somebody else holds is skipped; newer progress follows soon.
WITH current AS MATERIALIZED (
    SELECT job.id, job.attempt, report.done, report.total, report.bytes_done, report.phase
      FROM jsonb_to_recordset(%(reports)s::jsonb) AS report (
               job_id uuid, attempt integer, lease_token uuid, done bigint, total bigint, bytes_done bigint, phase text)
      JOIN tenure.jobs AS job ON job.id = report.job_id AND job.state = 'running' AND job.attempt = report.attempt
                             AND job.lease_token = report.lease_token
     ORDER BY job.id FOR SHARE OF job SKIP LOCKED
)
INSERT INTO tenure.job_progress AS progress (job_id, attempt, done, total, bytes_done, phase, updated_at)
SELECT id, attempt, done, total, bytes_done, phase, coalesce(%(now)s, clock_timestamp()) FROM current
    ON CONFLICT (job_id) DO UPDATE
   SET attempt = excluded.attempt, done = excluded.done, total = excluded.total, bytes_done = excluded.bytes_done,
       phase = excluded.phase, updated_at = excluded.updated_at;
