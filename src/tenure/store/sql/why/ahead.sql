-- ahead: ready jobs of a lane before a place in it; counting stops at a bound. Index: jobs_ready.
SELECT count(*)::integer
  FROM (SELECT FROM tenure.jobs
         WHERE queue = %(queue)s AND tenant_id = %(tenant_id)s AND state = 'queued'
           AND (priority, seq) < (%(priority)s::smallint, %(seq)s::bigint)
         LIMIT %(count)s) AS job;
