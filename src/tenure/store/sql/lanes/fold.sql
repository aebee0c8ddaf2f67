-- fold: take the lane events of one queue into its lanes. Guard: the caller holds the queue's lock.
WITH gone AS (
    -- Only for a known queue: the events of any other must stay until it has a row, and with it a lock.
    DELETE FROM tenure.lane_events WHERE queue = (SELECT name FROM tenure.queues WHERE name = %(queue)s)
    RETURNING tenant_id, arrived, head_priority, head_seq, settled, used_seconds, charged_seconds
), news AS (
    SELECT tenant_id, sum(arrived) > 0 AS arrived, min(head_priority) AS head_priority, min(head_seq) AS head_seq,
           sum(settled)::integer AS settled, sum(used_seconds) AS used, sum(charged_seconds) AS charged
      FROM gone GROUP BY tenant_id
), opened AS (
    -- A tenant's first job here: its lane starts at the floor.
    INSERT INTO tenure.lanes (queue, tenant_id, virtual_time, backlogged)
    SELECT queue.name, news.tenant_id, queue.floor, true
      FROM news, tenure.queues AS queue
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
                    ELSE queue.floor END),
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
      FROM news, tenure.queues AS queue
     WHERE queue.name = %(queue)s AND lane.queue = %(queue)s AND lane.tenant_id = news.tenant_id
)
UPDATE tenure.queues
   SET running = greatest(running - (SELECT sum(settled) FROM news), 0)
 WHERE name = %(queue)s AND (SELECT sum(settled) FROM news) > 0;
