-- owner: the worker process that runs a tenant's job now, for people.
SELECT worker.pid, job.attempt, extract(epoch FROM job.lease_expires_at - clock_timestamp())::double precision
  FROM tenure.jobs AS job JOIN tenure.workers AS worker ON worker.id = job.lease_owner
 WHERE job.id = %(job_id)s AND job.tenant_id = %(tenant_id)s AND job.state = 'running';
