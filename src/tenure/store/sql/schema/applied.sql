-- applied: every migration applied so far.
SELECT version, name, checksum FROM tenure.schema_migrations ORDER BY version;
