-- tune: change one lane's settings; null leaves a value. Guard: the caller holds the queue's lock and has folded.
-- Returns the settings before and after.
WITH under_way AS (
    -- What claims charged and ends have not corrected yet: the correction will be made by the new weight.
    SELECT coalesce(sum(charged_seconds), 0) AS charged
      FROM (SELECT charged_seconds FROM tenure.jobs
             WHERE queue = %(queue)s AND state = 'running' AND tenant_id = %(tenant_id)s
            UNION ALL
            SELECT charged_seconds FROM tenure.lane_events WHERE queue = %(queue)s AND tenant_id = %(tenant_id)s
           ) AS charge
), before AS MATERIALIZED (
    SELECT lane.*, queue.floor, coalesce(%(weight)s::double precision, lane.weight) AS next_weight, under_way.charged,
           lane.virtual_time - under_way.charged / lane.weight - queue.floor AS lead,
           lane.backlogged AND NOT lane.paused AND lane.running < least(lane.cap, lane.ceiling) AS could_be_served
      FROM tenure.lanes AS lane JOIN tenure.queues AS queue ON queue.name = lane.queue, under_way
     WHERE lane.queue = %(queue)s AND lane.tenant_id = %(tenant_id)s
)
-- A lead is worker-seconds per weight: it, and what is under way, count by the new weight from now on. A lane that
-- could not be served has saved nothing up: it goes on at the floor.
UPDATE tenure.lanes AS lane
   SET weight = before.next_weight, cap = coalesce(%(cap)s, lane.cap), ceiling = coalesce(%(ceiling)s, lane.ceiling),
       paused = coalesce(%(paused)s, lane.paused),
       virtual_time = CASE WHEN before.could_be_served AND before.next_weight = before.weight THEN lane.virtual_time
           ELSE greatest(
               before.floor + before.charged / before.next_weight
                   + before.lead * CASE WHEN before.lead > 0 THEN before.weight / before.next_weight ELSE 1 END,
               CASE WHEN before.could_be_served THEN '-Infinity' ELSE before.floor END) END
  FROM before WHERE lane.queue = before.queue AND lane.tenant_id = before.tenant_id
RETURNING before.weight, before.cap, before.ceiling, before.paused,
          lane.weight, lane.cap, lane.ceiling, lane.paused;
