-- publish: from here on the package can be seen. Same transaction as the end of its job; one package per export.
INSERT INTO tenure.packages (export_id, tenant_id, manifest_key, manifest_sha256, manifest_bytes, rows, bytes, files,
                             published_at, expires_at)
VALUES (%(export_id)s, %(tenant_id)s, %(manifest_key)s, %(manifest_sha256)s, %(manifest_bytes)s, %(rows)s, %(bytes)s,
        %(files)s::jsonb, %(published_at)s, %(published_at)s::timestamptz + make_interval(days => %(package_days)s))
RETURNING expires_at;
