-- loads: what runs in a queue now, by tenant; of very many jobs, some. Index: jobs_running.
WITH running AS MATERIALIZED (
    SELECT tenant_id, charged_seconds, greatest(extract(epoch FROM clock_timestamp() - claimed_at), 0) AS seconds
      FROM tenure.jobs WHERE queue = %(queue)s AND state = 'running' LIMIT %(count)s
)
SELECT running.tenant_id, coalesce(max(lane.weight), 1), count(*)::integer, sum(running.seconds)::double precision,
       sum(greatest(running.charged_seconds - running.seconds, 0))::double precision,
       max(greatest(running.charged_seconds - running.seconds, 0))::double precision
  FROM running LEFT JOIN tenure.lanes AS lane ON lane.queue = %(queue)s AND lane.tenant_id = running.tenant_id
 GROUP BY running.tenant_id;
