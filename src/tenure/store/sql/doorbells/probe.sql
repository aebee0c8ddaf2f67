-- probe: a listening connection that can still answer can still hear.
SELECT 1;
