-- find: a key that is neither revoked nor expired by the database's clock.
SELECT id, tenant_id, secret_sha256, scopes FROM tenure.api_keys
 WHERE id = %(key_id)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());
