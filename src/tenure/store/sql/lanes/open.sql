-- open: a lane for a tenant that never had work in this queue. Like every lane, it starts at the floor when it wakes.
-- Guard: the caller holds the queue's lock.
INSERT INTO tenure.lanes (queue, tenant_id)
SELECT name, %(tenant_id)s FROM tenure.queues WHERE name = %(queue)s
    ON CONFLICT DO NOTHING
RETURNING true;
