-- job: one job, and who runs it. Guard: the tenant's own; null asks for anybody's, as operators may.
SELECT job.id, job.tenant_id, job.queue, job.kind, job.state, job.priority, job.seq, job.attempt, job.created_at,
       job.queued_at, job.claimed_at, job.finished_at, job.not_before, job.cancel_requested_at, job.lease_expires_at,
       worker.host, worker.pid, clock_timestamp() AS seen_at
  FROM tenure.jobs AS job LEFT JOIN tenure.workers AS worker ON worker.id = job.lease_owner
 WHERE job.id = %(job_id)s AND (%(tenant_id)s::text IS NULL OR job.tenant_id = %(tenant_id)s);
