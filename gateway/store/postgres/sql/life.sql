-- name: life_now
SELECT CAST(pg_control_system.system_identifier AS text) AS system_identifier,
    (SELECT CAST(oid AS text) FROM pg_database WHERE datname = current_database()) AS database_oid,
    -- Of the current WAL file: the control file is late.
    substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8) AS timeline
FROM pg_control_system();

-- name: life_written
-- The row's own transaction stays readable through vacuum; a restored dump has another one.
SELECT system_identifier, database_oid, timeline, written_by, CAST(xmin AS text) AS really_written_by
FROM database_life;

-- name: life_write
INSERT INTO database_life (one, system_identifier, database_oid, timeline, written_by)
VALUES (1, :system_identifier, :database_oid, :timeline,
    CAST(CAST(CAST(pg_current_xact_id() AS text) AS bigint) % 4294967296 AS text))
ON CONFLICT (one) DO UPDATE SET system_identifier = excluded.system_identifier,
    database_oid = excluded.database_oid, timeline = excluded.timeline, written_by = excluded.written_by;

-- name: life_forget
DELETE FROM database_life;

-- name: life_is_new
-- Nothing was ever filed, so nothing can be missing.
SELECT 1 AS new WHERE NOT EXISTS (SELECT 1 FROM tasks) AND NOT EXISTS (SELECT 1 FROM events);
