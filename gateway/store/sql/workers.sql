-- name: worker_seen
INSERT INTO workers (worker_id, last_seen_at, last_seen_us) VALUES (:worker_id, :at, :elapsed_us)
ON CONFLICT (worker_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us;

-- name: worker_waits
INSERT INTO workers (worker_id, last_seen_at, last_seen_us, gateway) VALUES (:worker_id, :at, :elapsed_us, :gateway)
ON CONFLICT (worker_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us,
    gateway = excluded.gateway;

-- name: worker_arrived
INSERT INTO workers (worker_id, last_seen_at, last_seen_us, introduced_by, sites, accounts)
VALUES (:worker_id, :at, :elapsed_us, :identity, :sites, :accounts)
ON CONFLICT (worker_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us,
    introduced_by = CASE WHEN workers.introduced_by = '' THEN excluded.introduced_by ELSE workers.introduced_by END,
    sites = excluded.sites, accounts = excluded.accounts;

-- name: worker_get
SELECT * FROM workers WHERE worker_id = :worker_id;

-- name: workers_introduced_by
SELECT count(*) AS count FROM workers WHERE introduced_by = :identity;

-- name: workers_all
SELECT * FROM workers ORDER BY worker_id;

-- name: workers_forget_served
UPDATE workers SET sites = '', accounts = '' WHERE last_seen_us <= :before_us AND sites <> '';

-- name: worker_forget
DELETE FROM workers WHERE worker_id = :worker_id;

-- name: workers_most_recent
SELECT * FROM workers ORDER BY last_seen_us DESC LIMIT :count;
