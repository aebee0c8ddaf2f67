-- waiting: tenants with ready jobs in a queue, and since when the first in line is ready. Loose index scan over
-- jobs_ready: one probe for each tenant with work.
WITH RECURSIVE first AS (
    (SELECT tenant_id, queued_at FROM tenure.jobs WHERE queue = %(queue)s AND state = 'queued'
      ORDER BY tenant_id, priority, seq LIMIT 1)
    UNION ALL
    SELECT next.tenant_id, next.queued_at
      FROM first CROSS JOIN LATERAL (
           SELECT tenant_id, queued_at FROM tenure.jobs
            WHERE queue = %(queue)s AND state = 'queued' AND tenant_id > first.tenant_id
            ORDER BY tenant_id, priority, seq LIMIT 1) AS next
)
SELECT first.tenant_id, coalesce(lane.weight, 1),
       greatest(extract(epoch FROM %(until)s - first.queued_at), 0)::double precision
  FROM first LEFT JOIN tenure.lanes AS lane ON lane.queue = %(queue)s AND lane.tenant_id = first.tenant_id
 LIMIT %(count)s;
