-- recount: `running` of queue and lanes from the leases themselves. Guard: the caller holds the queue's lock and has
-- folded. The counters only speed the search up; this is the truth. Returns the lanes that had drifted.
WITH pending AS (
    SELECT tenant_id, sum(settled)::integer AS settled FROM tenure.lane_events WHERE queue = %(queue)s
     GROUP BY tenant_id
), truth AS (
    SELECT lane.tenant_id, count(job.id)::integer + coalesce(max(pending.settled), 0) AS running
      FROM tenure.lanes AS lane
      LEFT JOIN tenure.jobs AS job
        ON job.queue = %(queue)s AND job.state = 'running' AND job.tenant_id = lane.tenant_id
      LEFT JOIN pending ON pending.tenant_id = lane.tenant_id
     WHERE lane.queue = %(queue)s GROUP BY lane.tenant_id
), mended AS (
    UPDATE tenure.lanes AS lane SET running = truth.running
      FROM truth
     WHERE lane.queue = %(queue)s AND lane.tenant_id = truth.tenant_id AND lane.running <> truth.running
    RETURNING lane.tenant_id
), total AS (
    UPDATE tenure.queues SET running = (SELECT coalesce(sum(running), 0) FROM truth)
     WHERE name = %(queue)s AND running <> (SELECT coalesce(sum(running), 0) FROM truth)
)
SELECT tenant_id FROM mended;
