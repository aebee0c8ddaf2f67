-- ensure: make the queue known; its settings stay as they are.
INSERT INTO tenure.queues (name) VALUES (%(queue)s) ON CONFLICT DO NOTHING;
