-- rivals: lanes with work in line, at most `count` below their cap and `count` beyond it, smallest virtual time first.
-- Indexes: lanes_within_cap, lanes_beyond_cap.
(SELECT tenant_id, virtual_time, weight, estimate_seconds, running, cap, ceiling FROM tenure.lanes
  WHERE queue = %(queue)s AND backlogged AND NOT paused AND running < cap AND running < ceiling
  ORDER BY virtual_time, tenant_id LIMIT %(count)s)
UNION ALL
(SELECT tenant_id, virtual_time, weight, estimate_seconds, running, cap, ceiling FROM tenure.lanes
  WHERE queue = %(queue)s AND backlogged AND NOT paused AND running >= cap AND running < ceiling
  ORDER BY virtual_time, tenant_id LIMIT %(count)s);
