-- insert: admit an export. Guard: the tenant has no unfinished one (index exports_one_unfinished).
INSERT INTO tenure.exports (id, tenant_id, requested_by, export_order, fingerprint, cutoff)
VALUES (%(export_id)s, %(tenant_id)s, %(requested_by)s, %(export_order)s::jsonb, %(fingerprint)s, %(cutoff)s)
    ON CONFLICT (tenant_id) WHERE outcome IS NULL DO NOTHING
RETURNING id;
