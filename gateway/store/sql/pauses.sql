-- name: pauses_all
SELECT * FROM pauses ORDER BY site;

-- name: pause_set
INSERT INTO pauses (site, paused_at, paused_by, reason) VALUES (:site, :at, :by, :reason)
ON CONFLICT (site) DO NOTHING;

-- name: pause_lift
DELETE FROM pauses WHERE site = :site;
