-- tune: change one queue's settings; null leaves a value, `sets_slots` tells "as many as the workers have" from that.
-- Guard: the caller holds the queue's lock. Returns the settings before and after.
UPDATE tenure.queues AS queue
   SET slots = CASE WHEN %(sets_slots)s THEN %(slots)s ELSE queue.slots END,
       headroom = coalesce(%(headroom)s, queue.headroom), paused = coalesce(%(paused)s, queue.paused)
  FROM tenure.queues AS before
 WHERE queue.name = %(queue)s AND before.name = queue.name
RETURNING before.slots, before.headroom, before.paused, queue.slots, queue.headroom, queue.paused;
