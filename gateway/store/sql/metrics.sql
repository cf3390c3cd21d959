-- name: metrics_tasks
SELECT status, count(*) AS count FROM tasks GROUP BY status;

-- name: metrics_queries
SELECT status, count(*) AS count FROM account_queries GROUP BY status;

-- name: metrics_callbacks
SELECT status, count(*) AS count FROM callbacks GROUP BY status;

-- name: metrics_alerts
SELECT kind, count(*) AS count FROM alerts WHERE cleared_at IS NULL GROUP BY kind;

-- name: metrics_events
SELECT kind, count(*) AS count FROM events WHERE sequence > :after AND sequence <= :last GROUP BY kind;

-- name: metrics_refusals
SELECT kind, details_json FROM events WHERE sequence > :after AND sequence <= :last AND kind LIKE '%\_refused' ESCAPE '\';
