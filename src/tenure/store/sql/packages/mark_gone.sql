-- mark_gone: the package's objects were deleted; the record stays.
UPDATE tenure.packages SET gone_at = clock_timestamp() WHERE export_id = %(export_id)s AND gone_at IS NULL;
