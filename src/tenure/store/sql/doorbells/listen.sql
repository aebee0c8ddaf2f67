-- listen: hear the rings of all queues.
LISTEN tenure_doorbell;
