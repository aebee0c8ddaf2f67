-- sweep: find lanes with ready jobs that their lane does not know of. Guard: the caller holds the queue's lock and has
-- folded. A loose index scan over jobs_ready: one probe per lane with work. It should find nothing; what it finds is
-- counted. A lane whose arrivals still wait to be folded has lost sight of nothing.
WITH RECURSIVE waiting AS (
    (SELECT tenant_id FROM tenure.jobs WHERE queue = %(queue)s AND state = 'queued' ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT job.tenant_id FROM tenure.jobs AS job
             WHERE job.queue = %(queue)s AND job.state = 'queued' AND job.tenant_id > waiting.tenant_id
             ORDER BY job.tenant_id LIMIT 1)
      FROM waiting WHERE waiting.tenant_id IS NOT NULL
), unaware AS MATERIALIZED (
    SELECT waiting.tenant_id FROM waiting
     WHERE waiting.tenant_id IS NOT NULL
       AND waiting.tenant_id NOT IN (SELECT tenant_id FROM tenure.lane_events WHERE queue = %(queue)s AND arrived > 0)
), opened AS (
    INSERT INTO tenure.lanes (queue, tenant_id, virtual_time, backlogged)
    SELECT queue.name, unaware.tenant_id, queue.floor, true
      FROM unaware, tenure.queues AS queue WHERE queue.name = %(queue)s
        ON CONFLICT DO NOTHING
    RETURNING tenant_id
), mended AS (
    UPDATE tenure.lanes AS lane
       SET backlogged = true, head_priority = -32768, head_seq = 0,
           virtual_time = CASE WHEN lane.backlogged THEN lane.virtual_time
                               ELSE greatest(lane.virtual_time, queue.floor) END
      FROM unaware, tenure.queues AS queue
     WHERE queue.name = %(queue)s AND lane.queue = %(queue)s AND lane.tenant_id = unaware.tenant_id
       AND (NOT lane.backlogged OR EXISTS (
            SELECT FROM tenure.jobs AS job
             WHERE job.queue = %(queue)s AND job.tenant_id = lane.tenant_id AND job.state = 'queued'
               AND (job.priority, job.seq) <= (lane.head_priority, lane.head_seq)))
    RETURNING lane.tenant_id
)
SELECT tenant_id FROM opened UNION ALL SELECT tenant_id FROM mended;
