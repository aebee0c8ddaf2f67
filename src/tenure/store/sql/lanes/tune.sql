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
), floor AS (
    -- As in `lanes/fold`: what the lane whose turn is next has really used, without its charges for what is under way.
    SELECT coalesce(
        (SELECT virtual_time - running * estimate_seconds / weight FROM tenure.lanes
          WHERE queue = %(queue)s AND backlogged AND NOT paused AND running < cap AND running < ceiling
          ORDER BY lanes.virtual_time LIMIT 1),
        (SELECT floor FROM tenure.queues WHERE name = %(queue)s)) AS virtual_time
), before AS MATERIALIZED (
    SELECT lane.*, coalesce(%(weight)s::double precision, lane.weight) AS next_weight, under_way.charged,
           floor.virtual_time AS floor,
           lane.virtual_time - under_way.charged / lane.weight - floor.virtual_time AS lead,
           lane.backlogged AND (lane.paused OR lane.running >= least(lane.cap, lane.ceiling)) AS was_held_up
      FROM tenure.lanes AS lane, under_way, floor
     WHERE lane.queue = %(queue)s AND lane.tenant_id = %(tenant_id)s
)
-- A lead is worker-seconds per weight: it, and what is under way, count by the new weight from now on. A lane that had
-- work and could not be served has saved nothing up: it goes on at the floor.
UPDATE tenure.lanes AS lane
   SET weight = before.next_weight, cap = coalesce(%(cap)s, lane.cap), ceiling = coalesce(%(ceiling)s, lane.ceiling),
       paused = coalesce(%(paused)s, lane.paused),
       virtual_time = greatest(
           CASE WHEN before.next_weight = before.weight THEN lane.virtual_time
                ELSE before.floor + before.charged / before.next_weight
                   + before.lead * CASE WHEN before.lead > 0 THEN before.weight / before.next_weight ELSE 1 END END,
           CASE WHEN before.was_held_up THEN before.floor ELSE '-Infinity' END)
  FROM before WHERE lane.queue = before.queue AND lane.tenant_id = before.tenant_id
RETURNING before.weight, before.cap, before.ceiling, before.paused,
          lane.weight, lane.cap, lane.ceiling, lane.paused;
