-- limits: a migration waits a short while for locks, then gives up: a queue behind it would stop the product.
SELECT set_config('lock_timeout', %(lock_timeout)s, false);
