-- record: a migration was applied, in the same transaction.
INSERT INTO tenure.schema_migrations (version, name, checksum) VALUES (%(version)s, %(name)s, %(checksum)s);
