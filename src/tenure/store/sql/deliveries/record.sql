-- record: how the newest attempt of a notification ended.
UPDATE tenure.deliveries
   SET last_code = %(code)s, delivered_at = CASE WHEN %(delivered)s THEN clock_timestamp() ELSE delivered_at END
 WHERE id = %(delivery_id)s AND tenant_id = %(tenant_id)s;
