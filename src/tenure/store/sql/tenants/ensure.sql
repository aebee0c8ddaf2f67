-- ensure: make the tenant known; its settings stay as they are.
INSERT INTO tenure.tenants (id) VALUES (%(tenant_id)s) ON CONFLICT DO NOTHING;
