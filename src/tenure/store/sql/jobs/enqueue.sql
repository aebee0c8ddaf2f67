-- enqueue: insert new jobs and tell their lanes. Guard: a known id or a held unique key inserts nothing.
-- One JSON document carries the batch: ten times cheaper to send than text arrays.
WITH inserted AS (
    INSERT INTO tenure.jobs (id, tenant_id, queue, kind, args, state, priority, max_attempts, max_crashes,
                             lease_seconds, not_before, start_deadline, unique_key)
    SELECT new.id, new.tenant_id, new.queue, new.kind, new.args,
           CASE WHEN new.not_before > coalesce(%(now)s, clock_timestamp()) THEN 'scheduled' ELSE 'queued' END,
           new.priority, new.max_attempts, new.max_crashes, new.lease_seconds, new.not_before, new.start_deadline,
           new.unique_key
      FROM jsonb_to_recordset(%(jobs)s::jsonb) AS new (
               id uuid, tenant_id text, queue text, kind text, args jsonb, priority smallint, max_attempts integer,
               max_crashes integer, lease_seconds double precision, not_before timestamptz,
               start_deadline timestamptz, unique_key text)
        ON CONFLICT DO NOTHING
    RETURNING id, queue, tenant_id, state, priority, seq
), arrivals AS (
    INSERT INTO tenure.lane_events (queue, tenant_id, arrived, head_priority, head_seq)
    SELECT queue, tenant_id, count(*), min(priority), min(seq) - 1
      FROM inserted WHERE state = 'queued' GROUP BY queue, tenant_id
)
SELECT id, state FROM inserted;
