-- holder: which unfinished job of the tenant holds a unique key. Index: jobs_unique_key.
SELECT id FROM tenure.jobs
 WHERE tenant_id = %(tenant_id)s AND unique_key = %(unique_key)s
   AND state IN ('scheduled', 'queued', 'running', 'retry_wait');
