-- ring: wake the workers of a queue when this transaction commits. Equal rings of one transaction are sent once.
SELECT pg_notify('tenure_doorbell', %(queue)s);
