-- unfinished: the export that holds the tenant's slot. Index: exports_one_unfinished.
SELECT id, fingerprint FROM tenure.exports WHERE tenant_id = %(tenant_id)s AND outcome IS NULL;
