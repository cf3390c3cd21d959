-- name: worker_seen
INSERT INTO workers (worker_id, last_seen_at, last_seen_us) VALUES (:worker_id, :at, :elapsed_us)
ON CONFLICT (worker_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, last_seen_us = excluded.last_seen_us;

-- name: workers_all
SELECT * FROM workers ORDER BY worker_id;

-- name: pauses_all
SELECT * FROM pauses ORDER BY site;

-- name: pause_set
INSERT INTO pauses (site, paused_at, paused_by, reason) VALUES (:site, :at, :by, :reason)
ON CONFLICT (site) DO NOTHING;

-- name: pause_lift
DELETE FROM pauses WHERE site = :site;

-- name: clock_anchor_get
SELECT * FROM clock_anchor WHERE one = 1;

-- name: clock_anchor_set
INSERT INTO clock_anchor (one, boot_id, boot_us, elapsed_us, utc) VALUES (1, :boot_id, :boot_us, :elapsed_us, :utc)
ON CONFLICT (one) DO UPDATE SET boot_id = excluded.boot_id, boot_us = excluded.boot_us,
    elapsed_us = excluded.elapsed_us, utc = excluded.utc;
