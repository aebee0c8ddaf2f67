-- open: a lane for a tenant that never had work in this queue; it starts at the floor. Guard: the caller holds the
-- queue's lock.
INSERT INTO tenure.lanes (queue, tenant_id, virtual_time)
SELECT name, %(tenant_id)s, floor FROM tenure.queues WHERE name = %(queue)s
    ON CONFLICT DO NOTHING
RETURNING true;
