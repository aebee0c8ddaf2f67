-- register: a worker says it is there, for people; no lease is ever judged by this row.
INSERT INTO tenure.workers (id, host, pid, queues, slots, version)
VALUES (%(worker_id)s, %(host)s, %(pid)s, %(queues)s, %(slots)s, %(version)s);
