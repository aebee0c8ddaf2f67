-- promote: make due jobs ready. Guard: still waiting, and due by the database's clock. Index: jobs_due.
WITH due AS MATERIALIZED (
    SELECT id FROM tenure.jobs
     WHERE state IN ('scheduled', 'retry_wait') AND not_before <= coalesce(%(now)s, clock_timestamp())
     ORDER BY not_before LIMIT %(count)s FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE tenure.jobs AS job
       SET state = 'queued', not_before = NULL, seq = nextval('tenure.job_seq'),
           queued_at = coalesce(%(now)s, clock_timestamp())
      FROM due WHERE job.id = due.id AND job.state IN ('scheduled', 'retry_wait')
    RETURNING job.id, job.queue, job.tenant_id, job.priority, job.seq
), told AS (
    INSERT INTO tenure.lane_events (queue, tenant_id, arrived, head_priority, head_seq)
    SELECT queue, tenant_id, count(*), min(priority), min(seq) - 1 FROM promoted GROUP BY queue, tenant_id
)
SELECT id, queue FROM promoted;
