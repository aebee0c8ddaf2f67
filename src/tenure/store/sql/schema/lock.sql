-- lock: one migrator at a time, for the length of its session.
SELECT pg_advisory_lock(%(lock)s);
