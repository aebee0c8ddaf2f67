-- create: keep a key's digest; the secret itself is shown once and never stored.
INSERT INTO tenure.api_keys (id, tenant_id, name, secret_sha256, scopes, expires_at)
VALUES (%(key_id)s, %(tenant_id)s, %(name)s, %(secret_sha256)s, %(scopes)s, %(expires_at)s);
