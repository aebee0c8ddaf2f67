-- list: a tenant's exports, newest first (UUIDv7 sorts by time). Index: exports_of_tenant.
SELECT export.id, export.tenant_id, export.requested_by, export.export_order, export.cutoff, export.outcome,
       export.failure_code, export.failure_summary, export.failure_phase, export.created_at, export.finished_at,
       job.state, coalesce(job.attempt, 0), job.not_before, job.cancel_requested_at IS NOT NULL,
       progress.phase, progress.done, progress.total, progress.bytes_done, progress.attempt,
       package.manifest_key, package.manifest_sha256, package.manifest_bytes, package.rows, package.bytes,
       package.files, package.expires_at, package.gone_at IS NOT NULL OR package.expires_at <= clock_timestamp(),
       (SELECT jsonb_agg(jsonb_build_object('id', delivery.id, 'channel', delivery.channel, 'target', delivery.url,
                    'state', sent.state, 'attempts', sent.attempt, 'last_code', delivery.last_code,
                    'delivered_at', delivery.delivered_at) ORDER BY delivery.id)
          FROM tenure.deliveries AS delivery JOIN tenure.jobs AS sent ON sent.id = delivery.id
         WHERE delivery.export_id = export.id)
  FROM tenure.exports AS export
  LEFT JOIN tenure.jobs AS job ON job.id = export.id
  LEFT JOIN tenure.job_progress AS progress ON progress.job_id = export.id
  LEFT JOIN tenure.packages AS package ON package.export_id = export.id
 WHERE export.tenant_id = %(tenant_id)s AND (%(before)s::uuid IS NULL OR export.id < %(before)s)
 ORDER BY export.id DESC LIMIT %(count)s;
