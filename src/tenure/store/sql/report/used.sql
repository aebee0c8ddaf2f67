-- used: worker time and waits by queue and tenant between two moments. A run counts with its part between them, one
-- that goes on too. Indexes: runs_finished, jobs_running.
WITH span AS (
    SELECT queue, tenant_id, queued_at, claimed_at, finished_at, outcome FROM tenure.runs
     WHERE finished_at > %(since)s AND claimed_at < %(until)s AND (%(queue)s::text IS NULL OR queue = %(queue)s)
    UNION ALL
    SELECT queue, tenant_id, queued_at, claimed_at, NULL, NULL FROM tenure.jobs
     WHERE state = 'running' AND claimed_at < %(until)s AND (%(queue)s::text IS NULL OR queue = %(queue)s)
), total AS (
    SELECT queue, tenant_id,
           sum(extract(epoch FROM least(coalesce(finished_at, %(until)s), %(until)s)
                                  - greatest(claimed_at, %(since)s)))::double precision AS seconds,
           count(outcome)::integer AS runs, (count(*) - count(outcome))::integer AS running,
           count(*) FILTER (WHERE outcome = 'succeeded')::integer AS succeeded,
           count(*) FILTER (WHERE outcome = 'failed')::integer AS failed,
           count(*) FILTER (WHERE outcome = 'lease_expired')::integer AS lease_expired,
           count(*) FILTER (WHERE outcome = 'released')::integer AS released,
           count(*) FILTER (WHERE outcome = 'cancelled')::integer AS cancelled,
           percentile_disc(ARRAY[0.5, 0.95, 1]) WITHIN GROUP (
               ORDER BY greatest(extract(epoch FROM claimed_at - queued_at), 0)::double precision)
               FILTER (WHERE claimed_at >= %(since)s) AS waits
      FROM span GROUP BY queue, tenant_id
)
SELECT total.queue, total.tenant_id, coalesce(lane.weight, 1), total.seconds, total.runs, total.running,
       total.succeeded, total.failed, total.lease_expired, total.released, total.cancelled,
       total.waits[1], total.waits[2], total.waits[3]
  FROM total LEFT JOIN tenure.lanes AS lane USING (queue, tenant_id)
 ORDER BY total.seconds DESC, total.queue, total.tenant_id LIMIT %(count)s;
