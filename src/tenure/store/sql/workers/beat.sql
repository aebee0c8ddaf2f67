-- beat: the worker is still there, or has stopped.
UPDATE tenure.workers
   SET last_beat_at = clock_timestamp(), stopped_at = CASE WHEN %(stopped)s THEN clock_timestamp() END
 WHERE id = %(worker_id)s;
