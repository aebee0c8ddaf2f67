-- standing: a queue, the workers that take it and were heard of lately, and one tenant's lane in it. Queue and lane may
-- not be known yet: a job can wait where no worker ever was.
SELECT queue.name IS NOT NULL, queue.slots, coalesce(queue.headroom, 0), coalesce(queue.paused, false),
       coalesce(queue.floor, 0), crew.workers, crew.slots, lane.weight, lane.cap, lane.ceiling, lane.paused,
       lane.estimate_seconds, lane.virtual_time, lane.backlogged
  FROM (SELECT %(queue)s::text COLLATE "C" AS name) AS asked
 CROSS JOIN LATERAL (
       SELECT count(*)::integer AS workers, coalesce(sum(slots), 0)::integer AS slots FROM tenure.workers
        WHERE stopped_at IS NULL
              -- Asked for once: a clock read anew for each row could not be looked up in the index.
          AND last_beat_at > (SELECT clock_timestamp() - make_interval(secs => %(fresh_seconds)s))
          AND asked.name = ANY (queues)) AS crew
  LEFT JOIN tenure.queues AS queue ON queue.name = asked.name
  LEFT JOIN tenure.lanes AS lane ON lane.queue = asked.name AND lane.tenant_id = %(tenant_id)s;
