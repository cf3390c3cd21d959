-- name: oldest_transaction
-- One without a snapshot or a number holds nothing back; a prepared one does so until somebody ends it.
SELECT CAST(coalesce(extract(epoch FROM clock_timestamp() - min(began)) * 1000000, 0) AS bigint) AS age_us
FROM (
    SELECT xact_start AS began FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    UNION ALL
    SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()
) AS open;
