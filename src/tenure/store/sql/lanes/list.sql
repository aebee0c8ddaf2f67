-- list: a page of one queue's lanes with what they run and have waiting, by tenant id. Counting stops at a bound.
-- Indexes: the key, jobs_running, and jobs_ready once for each lane of the page.
WITH running AS MATERIALIZED (
    SELECT tenant_id, count(*)::integer AS jobs
      FROM (SELECT tenant_id FROM tenure.jobs WHERE queue = %(queue)s AND state = 'running'
             LIMIT %(running_count)s) AS job
     GROUP BY tenant_id
)
SELECT lane.queue, lane.tenant_id, lane.weight, lane.cap, lane.ceiling, lane.paused, coalesce(running.jobs, 0),
       (SELECT count(*)::integer FROM (SELECT FROM tenure.jobs
          WHERE queue = lane.queue AND tenant_id = lane.tenant_id AND state = 'queued'
          LIMIT %(waiting_count)s) AS job),
       lane.virtual_time,
       -- A lane that cannot be served now saves nothing up.
       CASE WHEN lane.backlogged AND NOT lane.paused AND lane.running < least(lane.cap, lane.ceiling)
            THEN lane.virtual_time - queue.floor ELSE greatest(lane.virtual_time - queue.floor, 0) END,
       lane.estimate_seconds
  FROM tenure.lanes AS lane JOIN tenure.queues AS queue ON queue.name = lane.queue
  LEFT JOIN running ON running.tenant_id = lane.tenant_id
 WHERE lane.queue = %(queue)s AND lane.tenant_id > %(after)s
 ORDER BY lane.tenant_id LIMIT %(count)s;
