-- create_partitions: make this month's and the next months' partitions of run records. Returns how many were made.
SELECT tenure.create_run_partitions(%(months_ahead)s);
