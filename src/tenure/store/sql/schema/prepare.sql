-- prepare: where migrations are written down.
CREATE SCHEMA IF NOT EXISTS tenure;
CREATE TABLE IF NOT EXISTS tenure.schema_migrations (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
