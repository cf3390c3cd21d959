-- name: alert_raise
INSERT INTO alerts (kind, subject, task_id, site, site_order_id, message, raised_at)
VALUES (:kind, :subject, :task_id, :site, :site_order_id, :message, :at)
ON CONFLICT (kind, subject) WHERE cleared_at IS NULL DO NOTHING
RETURNING alert_id;

-- name: alert_clear
UPDATE alerts SET cleared_at = :at WHERE alert_id = :alert_id AND cleared_at IS NULL;

-- name: alert_standing
SELECT alert_id FROM alerts WHERE kind = :kind AND subject = :subject AND cleared_at IS NULL;

-- name: alert_get
SELECT * FROM alerts WHERE alert_id = :alert_id;

-- name: alerts_standing_of_kind
SELECT subject FROM alerts WHERE cleared_at IS NULL AND kind = :kind ORDER BY subject;

-- name: alerts_standing_of_task
-- A conflict about an order number concerns each task that it was told of.
SELECT * FROM alerts WHERE cleared_at IS NULL AND task_id = :task_id
UNION ALL
SELECT alerts.* FROM order_numbers JOIN alerts USING (site, site_order_id)
WHERE order_numbers.task_id = :task_id AND alerts.cleared_at IS NULL
ORDER BY alert_id;

-- name: alerts_newest
SELECT * FROM alerts
WHERE alert_id < :below AND (:kind = '' OR kind = :kind) AND (:cleared_too = 1 OR cleared_at IS NULL)
ORDER BY alert_id DESC LIMIT :count;

-- name: alert_delivery_add
INSERT INTO alert_deliveries (alert_id, edge, created_us, due_us)
SELECT alert_id, :edge, :elapsed_us, :elapsed_us FROM alerts WHERE alert_id = :alert_id;

-- name: alert_deliveries_unlogged
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
WHERE alert_deliveries.logged = 0 ORDER BY delivery_id LIMIT :count;

-- name: alert_delivery_first
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
ORDER BY replace(:first_kinds, ',' || alerts.kind || ',', '') = :first_kinds, delivery_id LIMIT 1;

-- name: alert_delivery_most_tried
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
ORDER BY alert_deliveries.attempts DESC, delivery_id LIMIT 1;

-- name: alert_delivery_get
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
WHERE alert_deliveries.delivery_id = :delivery_id;

-- name: alert_delivery_logged
UPDATE alert_deliveries SET logged = 1 WHERE delivery_id = :delivery_id;

-- name: alert_delivery_retry
UPDATE alert_deliveries SET attempts = attempts + 1, due_us = :due_us WHERE delivery_id = :delivery_id;

-- name: alert_delivery_done
DELETE FROM alert_deliveries WHERE delivery_id = :delivery_id;
