-- record: who fetched which file, and how much of it was really sent.
INSERT INTO tenure.downloads (tenant_id, export_id, file, requested_by, bytes_sent, complete)
VALUES (%(tenant_id)s, %(export_id)s, %(file)s, %(requested_by)s, %(bytes_sent)s, %(complete)s);
