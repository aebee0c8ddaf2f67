-- lock: the queue's row is the scheduler's mutex; statements after it see everything committed before.
SELECT name FROM tenure.queues WHERE name = %(queue)s FOR UPDATE;
