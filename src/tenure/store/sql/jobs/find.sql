-- find: one job of a tenant, by key.
SELECT id, tenant_id, queue, kind, state, priority, attempt, failures, max_attempts, crashes, max_crashes, releases,
       not_before, lease_expires_at, cancel_requested_at, created_at, finished_at
  FROM tenure.jobs WHERE id = %(job_id)s AND tenant_id = %(tenant_id)s;
