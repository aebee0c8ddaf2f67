-- version: highest migration applied.
SELECT coalesce(max(version), 0) FROM tenure.schema_migrations;
