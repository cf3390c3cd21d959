-- name: leader_take
INSERT INTO sweep_leader (one, gateway_id, term_ends_us) VALUES (1, :gateway_id, :ends_us)
ON CONFLICT (one) DO UPDATE SET gateway_id = excluded.gateway_id, term_ends_us = excluded.term_ends_us
WHERE sweep_leader.gateway_id = excluded.gateway_id OR sweep_leader.term_ends_us <= :elapsed_us;

-- name: leader_get
SELECT gateway_id, term_ends_us FROM sweep_leader WHERE one = 1;

-- name: leader_resign
-- The row stays, so that it is known since when nobody leads.
UPDATE sweep_leader SET term_ends_us = :elapsed_us WHERE gateway_id = :gateway_id AND term_ends_us > :elapsed_us;

-- name: stream_opened
-- No row where the request was read late: the session has opened one with a higher number since.
INSERT INTO streams (process, stream_id, session_id, number, opened_us)
VALUES (:process, :stream_id, :session, :number, :elapsed_us)
ON CONFLICT (process) DO UPDATE SET stream_id = excluded.stream_id, session_id = excluded.session_id,
    number = excluded.number, opened_us = excluded.opened_us
WHERE streams.session_id <> excluded.session_id OR excluded.number = 0 OR streams.number <= excluded.number;

-- name: stream_of_process
SELECT stream_id FROM streams WHERE process = :process;

-- name: streams_prune
DELETE FROM streams WHERE opened_us < :before_us;

-- name: gateway_tells
INSERT INTO gateways (gateway_id, name, version, started_at, settings_json, last_seen_at, last_seen_us, waiting,
    problems_json, program)
VALUES (:gateway_id, :name, :version, :started_at, :settings_json, :last_seen_at, :last_seen_us, :waiting, :problems_json,
    :program)
ON CONFLICT (gateway_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us,
    waiting = excluded.waiting, problems_json = excluded.problems_json;

-- name: gateways_prune
-- Those that are long gone, and one that is gone since another of its name lives.
DELETE FROM gateways WHERE gateway_id <> :gateway_id AND (
    last_seen_us < :forgotten_us OR (last_seen_us < :gone_us AND name = :name)
    OR (last_seen_us IS NULL AND started_at < :forgotten_at)
);

-- name: gateways_others
-- Where there are too many, those that were heard of last.
SELECT gateway_id, name, version, started_at, last_seen_at, last_seen_us, waiting, problems_json FROM gateways
WHERE gateway_id <> :gateway_id ORDER BY last_seen_us DESC NULLS LAST, gateway_id LIMIT :count;

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
