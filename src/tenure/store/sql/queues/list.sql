-- list: all queues, or one, with what they run and have waiting and the workers heard of lately. Counting stops at a
-- bound. Indexes: jobs_running, jobs_ready, workers_present.
SELECT queue.name, queue.slots, queue.headroom, queue.paused,
       (SELECT count(*)::integer FROM (SELECT FROM tenure.jobs
          WHERE queue = queue.name AND state = 'running' LIMIT %(running_count)s) AS job),
       (SELECT count(*)::integer FROM (SELECT FROM tenure.jobs
          WHERE queue = queue.name AND state = 'queued' LIMIT %(waiting_count)s) AS job),
       crew.workers, crew.slots, queue.floor
  FROM tenure.queues AS queue
 CROSS JOIN LATERAL (
       SELECT count(*)::integer AS workers, coalesce(sum(slots), 0)::integer AS slots FROM tenure.workers
        WHERE stopped_at IS NULL
              -- Asked for once: a clock read anew for each row could not be looked up in the index.
          AND last_beat_at > (SELECT clock_timestamp() - make_interval(secs => %(fresh_seconds)s))
          AND queue.name = ANY (queues)) AS crew
 WHERE %(queue)s::text IS NULL OR queue.name = %(queue)s
 ORDER BY queue.name;
