-- settle_floor: the floor is the smallest virtual time of a lane whose turn may be next; with none, it stays. A lane at
-- its cap counts only when no lane below its cap has work: it stands still while the others go on, and a waking lane
-- would get all the time since then as credit. Guard: the caller holds the queue's lock. Without this, an estimate far
-- too high would lift the floor for good.
UPDATE tenure.queues AS queue
   SET floor = lowest.virtual_time
  FROM (SELECT coalesce(
            (SELECT virtual_time FROM tenure.lanes
              WHERE queue = %(queue)s AND backlogged AND NOT paused AND running < cap AND running < ceiling
              ORDER BY virtual_time LIMIT 1),
            (SELECT virtual_time FROM tenure.lanes
              WHERE queue = %(queue)s AND backlogged AND NOT paused AND running >= cap AND running < ceiling
              ORDER BY virtual_time LIMIT 1)) AS virtual_time) AS lowest
 WHERE queue.name = %(queue)s AND lowest.virtual_time IS NOT NULL AND queue.floor <> lowest.virtual_time;
