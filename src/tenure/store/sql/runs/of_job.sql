-- of_job: every recorded run of one job of a tenant, in order.
SELECT job_id, attempt, tenant_id, queue, kind, worker_id::text, host, pid, queued_at, claimed_at, finished_at,
       outcome, error_class, error_code, error_message, error_phase, traceback, exit_signal, peak_memory_bytes,
       log_tail, result
  FROM tenure.runs WHERE job_id = %(job_id)s AND tenant_id = %(tenant_id)s ORDER BY attempt;
