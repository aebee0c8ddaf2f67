-- insert: a notification to send; its job has the same id and is enqueued in the same transaction.
INSERT INTO tenure.deliveries (id, export_id, tenant_id, channel, url)
VALUES (%(delivery_id)s, %(export_id)s, %(tenant_id)s, %(channel)s, %(url)s);
