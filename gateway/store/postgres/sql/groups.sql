-- name: writer_lock
-- What BEGIN IMMEDIATE is to SQLite: every writing group of every gateway passes one after the other (docs/adr/0019-one-writers-lock.md).
-- It is held through COMMIT, so the numbers of rows are in the order of commits.
SELECT pg_advisory_xact_lock(1329021268);

-- name: group_open
-- The newest group, the time, and which programs are allowed. Not read in the statement that waits for the lock: its snapshot is older than the wait.
SELECT newest.number, newest.elapsed_us, newest.database_us, newest.utc,
    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS now_us,
    (SELECT oldest_program FROM schema_compatibility) AS oldest_program
FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM store_groups ORDER BY number DESC LIMIT 1) AS newest ON true;

-- name: group_close
INSERT INTO store_groups (group_id, gateway_id, utc, elapsed_us, database_us, boot_id, boot_us)
VALUES (:group_id, :gateway_id, :utc, :elapsed_us, :database_us, :boot_id, :boot_us);

-- name: group_notify
SELECT pg_notify('order_gateway', :payload);

-- name: group_get
SELECT number FROM store_groups WHERE group_id = :group_id;

-- name: group_newest
SELECT elapsed_us FROM store_groups ORDER BY number DESC LIMIT 1;

-- name: group_last_of_boot
SELECT elapsed_us, boot_us FROM store_groups WHERE boot_id = :boot_id ORDER BY number DESC LIMIT 1;

-- name: groups_prune
-- In the order of the key, so that it looks at no more than it deletes.
DELETE FROM store_groups WHERE elapsed_us < :before_us AND number IN (
    SELECT number FROM store_groups ORDER BY number LIMIT :count
);
