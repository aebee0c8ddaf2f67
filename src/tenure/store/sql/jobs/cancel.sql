-- cancel: end a waiting job at once, or ask a running one to stop. Guard: the tenant's own job, unfinished.
UPDATE tenure.jobs
   SET state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
       finished_at = CASE WHEN state = 'running' THEN NULL ELSE coalesce(%(now)s, clock_timestamp()) END,
       not_before = CASE WHEN state = 'running' THEN not_before END,
       cancel_requested_at = coalesce(cancel_requested_at, %(now)s, clock_timestamp())
 WHERE id = %(job_id)s AND tenant_id = %(tenant_id)s AND state IN ('scheduled', 'queued', 'running', 'retry_wait')
RETURNING id, tenant_id, kind, attempt, state;
