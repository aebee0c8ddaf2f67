-- settle_floor: the floor is the smallest virtual time of a lane whose turn may be next, so that an estimate far too
-- high lifts it for a while only. A lane at its cap counts only when none below its cap has work: it stands still, and
-- a waking lane would get all the time since then as credit. Guard: the caller holds the queue's lock.
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
