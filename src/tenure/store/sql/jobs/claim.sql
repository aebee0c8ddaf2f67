-- claim: give up to `count` ready jobs of one queue to a worker, fairly. Guard: the caller holds the queue's lock
-- and has folded its lane events; each job must still be queued. Policy: core/fairness.py.
WITH queue AS MATERIALIZED (
    SELECT least(%(count)s, coalesce(slots - running, %(count)s)) AS free,
           least(%(count)s, coalesce(slots - headroom - running, %(count)s)) AS lendable
      FROM tenure.queues WHERE name = %(queue)s AND NOT paused
), within AS MATERIALIZED (
    -- The n lanes of smallest virtual time hold the n smallest start tags, so no other lane need be looked at.
    SELECT tenant_id, virtual_time, estimate_seconds / weight AS step, least(cap, ceiling) - running AS room
      FROM tenure.lanes
     WHERE queue = %(queue)s AND backlogged AND NOT paused AND running < cap AND running < ceiling
     ORDER BY virtual_time, tenant_id LIMIT coalesce((SELECT greatest(free, 0) FROM queue), 0)
), even AS MATERIALIZED (
    -- Were the slots dealt out evenly, the last tag given would be `last`: no tag beyond it can be among the smallest.
    SELECT CASE WHEN sum(least(room, deal.each)) >= max(deal.free)
                THEN max(virtual_time + (least(room, deal.each) - 1) * step) ELSE 'Infinity' END AS last
      FROM within, (SELECT free, ceil(free::float8 / (SELECT greatest(count(*), 1) FROM within))::integer AS each
                      FROM queue) AS deal
), within_tags AS MATERIALIZED (
    SELECT tenant_id, virtual_time + k * step AS tag
      FROM within, queue, even,
           -- One more than fit, for the division may round down.
           LATERAL generate_series(0, least(room, free, floor(least((even.last - virtual_time) / step, 1e6))::integer + 2)
               - 1) AS k
     ORDER BY tag, tenant_id LIMIT coalesce((SELECT greatest(free, 0) FROM queue), 0)
), beyond AS MATERIALIZED (
    -- Only when every lane below its cap is served: idle slots are lent beyond caps, up to ceilings.
    SELECT lane.tenant_id, lane.virtual_time + coalesce(given.count, 0) * lane.estimate_seconds / lane.weight
               AS virtual_time,
           lane.estimate_seconds / lane.weight AS step, lane.ceiling - lane.running - coalesce(given.count, 0) AS room
      FROM tenure.lanes AS lane
      LEFT JOIN (SELECT tenant_id, count(*) FROM within_tags GROUP BY tenant_id) AS given USING (tenant_id)
     WHERE lane.queue = %(queue)s AND lane.backlogged AND NOT lane.paused AND lane.running < lane.ceiling
       AND (SELECT count(*) FROM within_tags) < (SELECT least(free, lendable) FROM queue)
     ORDER BY virtual_time, tenant_id LIMIT coalesce((SELECT greatest(free, 0) FROM queue), 0)
), tags AS (
    SELECT tenant_id, tag FROM within_tags
    UNION ALL
    (SELECT tenant_id, virtual_time + k * step AS tag
       FROM beyond, queue, LATERAL generate_series(0, least(room, free) - 1) AS k
      ORDER BY tag, tenant_id
      LIMIT (SELECT greatest(least(free, lendable) - (SELECT count(*) FROM within_tags), 0) FROM queue))
), shares AS MATERIALIZED (
    SELECT tenant_id, count(*)::integer AS share FROM tags GROUP BY tenant_id
), picked AS MATERIALIZED (
    -- A row somebody else holds is skipped, not waited for: nobody can block the scheduler.
    SELECT lane.tenant_id, lane.estimate_seconds, job.id, job.priority, job.seq
      FROM shares JOIN tenure.lanes AS lane ON lane.queue = %(queue)s AND lane.tenant_id = shares.tenant_id,
           LATERAL (SELECT id, priority, seq FROM tenure.jobs
                     WHERE queue = %(queue)s AND tenant_id = lane.tenant_id AND state = 'queued'
                       AND (priority, seq) > (lane.head_priority, lane.head_seq) AND kind = ANY (%(kinds)s)
                     ORDER BY priority, seq LIMIT shares.share FOR UPDATE SKIP LOCKED) AS job
), claimed AS (
    UPDATE tenure.jobs AS job
       SET state = 'running', attempt = job.attempt + 1, lease_owner = %(worker_id)s,
           lease_token = gen_random_uuid(), claimed_at = coalesce(%(now)s, clock_timestamp()),
           lease_expires_at = coalesce(%(now)s, clock_timestamp()) + make_interval(secs => job.lease_seconds),
           charged_seconds = picked.estimate_seconds, not_before = NULL
      FROM picked WHERE job.id = picked.id AND job.state = 'queued'
    RETURNING job.id, job.attempt, job.lease_token, job.tenant_id, job.queue, job.kind, job.args, job.lease_seconds,
              job.failures, job.max_attempts, job.crashes, job.max_crashes, job.cancel_requested_at, picked.priority,
              picked.seq
), taken AS (
    SELECT shares.tenant_id, shares.share, count(claimed.id)::integer AS took,
           (array_agg(claimed.priority ORDER BY claimed.priority DESC, claimed.seq DESC))[1] AS head_priority,
           (array_agg(claimed.seq ORDER BY claimed.priority DESC, claimed.seq DESC))[1] AS head_seq
      FROM shares LEFT JOIN claimed USING (tenant_id) GROUP BY shares.tenant_id, shares.share
), charged AS (
    UPDATE tenure.lanes AS lane
       SET running = lane.running + taken.took,
           virtual_time = lane.virtual_time + taken.took * lane.estimate_seconds / lane.weight,
           backlogged = taken.took >= taken.share,
           head_priority = coalesce(taken.head_priority, lane.head_priority),
           head_seq = coalesce(taken.head_seq, lane.head_seq)
      FROM taken WHERE lane.queue = %(queue)s AND lane.tenant_id = taken.tenant_id
), floored AS (
    -- Not below what was just served, so that idling saves no credit; `queues/settle_floor` lowers it when lanes do.
    UPDATE tenure.queues
       SET running = running + (SELECT count(*) FROM claimed),
           floor = greatest(floor, (
               SELECT max(lane.virtual_time + (taken.took - 1) * lane.estimate_seconds / lane.weight)
                 FROM taken JOIN tenure.lanes AS lane ON lane.queue = %(queue)s AND lane.tenant_id = taken.tenant_id
                WHERE taken.took > 0))
     WHERE name = %(queue)s AND EXISTS (SELECT FROM claimed)
)
-- `fell_short`: a lane had fewer jobs than its share and is unmarked now, and there are others its slots may go to.
SELECT round.fell_short, claimed.id, claimed.attempt, claimed.lease_token, claimed.tenant_id, claimed.queue,
       claimed.kind, claimed.args, claimed.lease_seconds, claimed.failures, claimed.max_attempts, claimed.crashes,
       claimed.max_crashes, checkpoint.value
  FROM (SELECT EXISTS (SELECT FROM taken WHERE took < share) AND EXISTS (
                   SELECT FROM tenure.lanes AS other
                    WHERE other.queue = %(queue)s AND other.backlogged AND NOT other.paused
                      AND other.running < other.ceiling
                      AND other.tenant_id <> ALL (SELECT tenant_id FROM taken WHERE took < share)) AS fell_short) AS round
  LEFT JOIN claimed ON true LEFT JOIN tenure.checkpoints AS checkpoint ON checkpoint.job_id = claimed.id
 ORDER BY claimed.seq;
