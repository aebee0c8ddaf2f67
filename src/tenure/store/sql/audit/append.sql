-- append: who did what to which thing.
INSERT INTO tenure.audit_log (actor, tenant_id, action, subject, detail)
VALUES (%(actor)s, %(tenant_id)s, %(action)s, %(subject)s, %(detail)s::jsonb);
