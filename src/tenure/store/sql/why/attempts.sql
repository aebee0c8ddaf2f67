-- attempts: the newest recorded runs of a job, and when each became ready. Index: the key of each partition.
SELECT attempt, queued_at, claimed_at, finished_at, outcome, error_code, error_message, error_phase, host
  FROM tenure.runs WHERE job_id = %(job_id)s ORDER BY attempt DESC LIMIT %(count)s;
