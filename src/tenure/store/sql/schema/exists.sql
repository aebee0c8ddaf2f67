-- exists: whether any migration was ever applied to this database.
SELECT to_regclass('tenure.schema_migrations') IS NOT NULL;
