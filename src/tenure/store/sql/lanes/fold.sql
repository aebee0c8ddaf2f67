-- fold: take the lane events of one queue into its lanes. Guard: the caller holds the queue's lock.
WITH gone AS (
    -- Only for a known queue: the events of any other must stay until it has a row, and with it a lock.
    DELETE FROM tenure.lane_events WHERE queue = (SELECT name FROM tenure.queues WHERE name = %(queue)s)
    RETURNING tenant_id, arrived, head_priority, head_seq, settled, used_seconds, charged_seconds
), news AS (
    SELECT tenant_id, sum(arrived) > 0 AS arrived, min(head_priority) AS head_priority, min(head_seq) AS head_seq,
           sum(settled)::integer AS settled, sum(used_seconds) AS used, sum(charged_seconds) AS charged
      FROM gone GROUP BY tenant_id
), floor AS MATERIALIZED (
    -- Where a waking lane starts: at what the lane whose turn is next has really used. Its charge for runs still under
    -- way does not count: it is an estimate, and correcting it later would put the woken lane behind by the difference.
    SELECT coalesce(min(used.virtual_time), (SELECT floor FROM tenure.queues WHERE name = %(queue)s)) AS virtual_time
      FROM (SELECT lane.virtual_time + (news.used - news.charged) / lane.weight
                       - greatest(lane.running - news.settled, 0) * lane.estimate_seconds / lane.weight AS virtual_time
              FROM news JOIN tenure.lanes AS lane ON lane.queue = %(queue)s AND lane.tenant_id = news.tenant_id
             WHERE lane.backlogged AND NOT lane.paused AND lane.running < lane.cap AND lane.running < lane.ceiling
            UNION ALL
            (SELECT virtual_time - running * estimate_seconds / weight
               FROM tenure.lanes
              WHERE queue = %(queue)s AND backlogged AND NOT paused AND running < cap AND running < ceiling
                AND tenant_id NOT IN (SELECT tenant_id FROM news)
              ORDER BY lanes.virtual_time LIMIT 1)) AS used
), opened AS (
    -- A tenant's first job here: its lane starts at the floor.
    INSERT INTO tenure.lanes (queue, tenant_id, virtual_time, backlogged)
    SELECT queue.name, news.tenant_id, floor.virtual_time, true
      FROM news, floor, tenure.queues AS queue
     WHERE queue.name = %(queue)s AND news.arrived
       AND NOT EXISTS (SELECT FROM tenure.lanes WHERE lanes.queue = %(queue)s AND lanes.tenant_id = news.tenant_id)
), updated AS (
    -- What a run really took replaces what its claim charged. A lane that was idle or full gains nothing by it:
    -- it goes on at the floor. Arrivals of better priority, or committed late, move the scan head back.
    UPDATE tenure.lanes AS lane
       SET running = greatest(lane.running - news.settled, 0),
           virtual_time = greatest(
               lane.virtual_time + (news.used - news.charged) / lane.weight,
               CASE WHEN lane.backlogged AND lane.running < least(lane.cap, lane.ceiling) THEN '-Infinity'
                    ELSE floor.virtual_time END),
           estimate_seconds = CASE WHEN news.settled = 0 THEN lane.estimate_seconds
               ELSE least(greatest(lane.estimate_seconds
                   + (news.used / news.settled - lane.estimate_seconds) * (1 - 0.8 ^ least(news.settled, 100)),
                   0.001), 3600) END,
           backlogged = lane.backlogged OR news.arrived,
           (head_priority, head_seq) = (
               SELECT best.priority, best.seq
                 FROM (VALUES (lane.head_priority, lane.head_seq), (news.head_priority, news.head_seq))
                   AS best (priority, seq)
                WHERE best.seq IS NOT NULL ORDER BY best.priority, best.seq LIMIT 1)
      FROM news, floor
     WHERE lane.queue = %(queue)s AND lane.tenant_id = news.tenant_id
)
UPDATE tenure.queues
   SET running = greatest(running - (SELECT sum(settled) FROM news), 0)
 WHERE name = %(queue)s AND (SELECT sum(settled) FROM news) > 0;
