-- settle: record how an export ended, in the transaction that ends its job. Guard: not ended before.
UPDATE tenure.exports
   SET outcome = %(outcome)s, failure_code = %(failure_code)s, failure_summary = %(failure_summary)s,
       failure_phase = %(failure_phase)s, finished_at = clock_timestamp()
 WHERE id = %(export_id)s AND tenant_id = %(tenant_id)s AND outcome IS NULL
RETURNING export_order, finished_at;
