-- expired: packages past their time whose objects are still there. Index: packages_expiring.
SELECT export_id, manifest_key FROM tenure.packages
 WHERE gone_at IS NULL AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT %(count)s;
