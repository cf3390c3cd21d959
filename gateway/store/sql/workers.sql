-- name: worker_seen
INSERT INTO workers (worker_id, last_seen_at, last_seen_us) VALUES (:worker_id, :at, :elapsed_us)
ON CONFLICT (worker_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us;

-- name: workers_all
SELECT * FROM workers ORDER BY worker_id;

-- name: worker_forget
DELETE FROM workers WHERE worker_id = :worker_id;

-- name: workers_most_recent
SELECT * FROM workers ORDER BY last_seen_us DESC LIMIT :count;
