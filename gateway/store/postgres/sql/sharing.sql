-- name: leader_take
INSERT INTO sweep_leader (one, gateway_id, term_ends_us) VALUES (1, :gateway_id, :ends_us)
ON CONFLICT (one) DO UPDATE SET gateway_id = excluded.gateway_id, term_ends_us = excluded.term_ends_us
WHERE sweep_leader.gateway_id = excluded.gateway_id OR sweep_leader.term_ends_us <= :elapsed_us;

-- name: leader_resign
DELETE FROM sweep_leader WHERE gateway_id = :gateway_id;

-- name: stream_opened
INSERT INTO streams (process, stream_id, opened_us) VALUES (:process, :stream_id, :elapsed_us)
ON CONFLICT (process) DO UPDATE SET stream_id = excluded.stream_id, opened_us = excluded.opened_us;

-- name: stream_of_process
SELECT stream_id FROM streams WHERE process = :process;

-- name: streams_prune
DELETE FROM streams WHERE opened_us < :before_us;

-- name: gateway_starts
INSERT INTO gateways (gateway_id, started_at, settings_json) VALUES (:gateway_id, :at, :settings_json);

-- name: gateway_stops
DELETE FROM gateways WHERE gateway_id = :gateway_id;

-- name: gateways_living
-- Those who have written lately; the newest groups are enough to find them.
SELECT gateways.gateway_id, gateways.settings_json FROM gateways
WHERE gateways.gateway_id IN (
    SELECT latest.gateway_id
    FROM (SELECT gateway_id, elapsed_us FROM store_groups ORDER BY number DESC LIMIT 10000) AS latest
    WHERE latest.elapsed_us > :since_us
) AND gateways.gateway_id <> :gateway_id
ORDER BY gateways.gateway_id;

-- name: life_now
SELECT CAST(pg_control_system.system_identifier AS text) AS system_identifier,
    substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8) AS timeline
FROM pg_control_system();

-- name: life_written
-- The row's own transaction stays readable through vacuum; a restored dump has another one.
SELECT system_identifier, timeline, written_by, CAST(xmin AS text) AS really_written_by FROM database_life;

-- name: life_write
INSERT INTO database_life (one, system_identifier, timeline, written_by)
VALUES (1, :system_identifier, :timeline, CAST(CAST(CAST(pg_current_xact_id() AS text) AS bigint) % 4294967296 AS text))
ON CONFLICT (one) DO UPDATE SET system_identifier = excluded.system_identifier, timeline = excluded.timeline,
    written_by = excluded.written_by;

-- name: life_forget
DELETE FROM database_life;

-- name: life_is_new
-- Nothing was ever filed, so nothing can be missing.
SELECT 1 AS new WHERE NOT EXISTS (SELECT 1 FROM tasks) AND NOT EXISTS (SELECT 1 FROM events);
