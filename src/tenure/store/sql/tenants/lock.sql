-- lock: the tenant's settings, held until the transaction ends: admissions of one tenant come one after another.
SELECT settings, clock_timestamp() FROM tenure.tenants WHERE id = %(tenant_id)s FOR UPDATE;
