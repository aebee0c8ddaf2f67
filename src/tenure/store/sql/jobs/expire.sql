-- expire: end jobs that no worker took by their start deadline. Guard: still queued and never started.
-- Index: jobs_start_deadline.
WITH late AS MATERIALIZED (
    SELECT id FROM tenure.jobs
     WHERE state = 'queued' AND attempt = 0 AND start_deadline IS NOT NULL
       AND start_deadline < coalesce(%(now)s, clock_timestamp())
       AND kind = ANY (%(kinds)s)
     ORDER BY start_deadline LIMIT %(count)s FOR UPDATE SKIP LOCKED
)
UPDATE tenure.jobs AS job
   SET state = 'dead', finished_at = coalesce(%(now)s, clock_timestamp())
  FROM late WHERE job.id = late.id AND job.state = 'queued'
RETURNING job.id, job.tenant_id, job.kind, job.attempt, job.state;
