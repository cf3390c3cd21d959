-- name: task_requeue
UPDATE tasks
SET status = 'queued', queued_us = :elapsed_us, end_state = NULL, end_status = NULL, updated_at = :at
WHERE task_id = :task_id
    AND (status = 'stale' OR status = 'needs_human' AND may_have_clicked = 0 AND order_known = 0);

-- name: task_withdraw
UPDATE tasks SET status = 'stale', updated_at = :at
WHERE task_id = :task_id AND status = 'queued' AND lease_count > 0;

-- name: task_resolve
UPDATE tasks
SET status = :outcome, latest_state = :latest_state, order_stated = :order_stated, resolved_at = :at, updated_at = :at
WHERE task_id = :task_id AND status = :from_status;

-- name: task_of_worker
SELECT task_id FROM tasks WHERE slot IS NOT NULL AND lease_owner = :worker_id;

-- name: worker_forget
DELETE FROM workers WHERE worker_id = :worker_id;

-- name: tasks_to_decide
-- A task waits since its oldest standing alert. A conflict's subject is the task, or site/number for all that told it.
SELECT tasks.*, waiting.first_alert FROM (
    SELECT task_id, min(alert_id) AS first_alert FROM (
        SELECT subject AS task_id, alert_id FROM alerts
        WHERE cleared_at IS NULL AND kind NOT IN ('worker_offline', 'callback_given_up')
        UNION ALL
        SELECT order_numbers.task_id, alerts.alert_id FROM alerts
        JOIN order_numbers ON order_numbers.site = substr(alerts.subject, 1, instr(alerts.subject, '/') - 1)
            AND order_numbers.site_order_id = substr(alerts.subject, instr(alerts.subject, '/') + 1)
        WHERE alerts.cleared_at IS NULL AND alerts.kind = 'site_order_id_conflict'
    ) AS standing
    GROUP BY task_id
) AS waiting
JOIN tasks ON tasks.task_id = waiting.task_id
WHERE (waiting.first_alert, tasks.row) > (:after_alert, :after_row)
ORDER BY waiting.first_alert, tasks.row LIMIT :count;

-- name: alerts_standing_of_task
SELECT * FROM alerts
WHERE cleared_at IS NULL AND kind NOT IN ('worker_offline', 'callback_given_up') AND subject = :task_id
    OR cleared_at IS NULL AND kind = 'site_order_id_conflict' AND EXISTS (
        SELECT 1 FROM order_numbers
        WHERE order_numbers.task_id = :task_id AND order_numbers.site || '/' || order_numbers.site_order_id = subject
    )
ORDER BY alert_id;

-- name: alerts_standing_of_kind
SELECT * FROM alerts WHERE cleared_at IS NULL AND kind = :kind ORDER BY subject;

-- name: alerts_newest
SELECT * FROM alerts
WHERE alert_id < :below AND (:kind = '' OR kind = :kind) AND (:cleared_too = 1 OR cleared_at IS NULL)
ORDER BY alert_id DESC LIMIT :count;

-- name: alert_get
SELECT * FROM alerts WHERE alert_id = :alert_id;

-- name: alert_delivery_add
INSERT INTO alert_deliveries (alert_id, edge, created_us, due_us)
SELECT alert_id, :edge, :elapsed_us, :elapsed_us FROM alerts WHERE alert_id = :alert_id;

-- name: alert_deliveries_unlogged
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
WHERE alert_deliveries.logged = 0 ORDER BY delivery_id LIMIT :count;

-- name: alert_delivery_oldest
SELECT alert_deliveries.*, alerts.kind, alerts.subject, alerts.message, alerts.raised_at, alerts.cleared_at
FROM alert_deliveries JOIN alerts USING (alert_id)
ORDER BY delivery_id LIMIT 1;

-- name: alert_delivery_get
SELECT * FROM alert_deliveries WHERE delivery_id = :delivery_id;

-- name: alert_delivery_logged
UPDATE alert_deliveries SET logged = 1 WHERE delivery_id = :delivery_id;

-- name: alert_delivery_retry
UPDATE alert_deliveries SET attempts = attempts + 1, due_us = :due_us WHERE delivery_id = :delivery_id;

-- name: alert_delivery_done
DELETE FROM alert_deliveries WHERE delivery_id = :delivery_id;

-- name: events_newest
SELECT * FROM events
WHERE sequence < :below AND sequence >= :first AND (:kinds = '' OR instr(:kinds, ',' || kind || ',') > 0)
ORDER BY sequence DESC LIMIT :count;

-- name: events_newest_of_subject
SELECT * FROM events
WHERE subject = :subject AND sequence < :below AND sequence >= :first
    AND (:kinds = '' OR instr(:kinds, ',' || kind || ',') > 0)
ORDER BY sequence DESC LIMIT :count;

-- name: event_from
SELECT sequence, occurred_at FROM events WHERE sequence >= :sequence ORDER BY sequence LIMIT 1;

-- name: event_last_backup
SELECT occurred_at FROM events WHERE subject = '' AND kind = :kind ORDER BY sequence DESC LIMIT 1;

-- name: event_last_with_verification
SELECT details_json FROM events
WHERE subject = :subject AND kind IN ('permit', 'permit_refused') AND instr(details_json, '"verification":{') > 0
ORDER BY sequence DESC LIMIT 1;

-- name: tasks_open
-- Those that may still be, or have been since, in a worker's hand; one that needs a person could have been requeued.
SELECT * FROM tasks
WHERE status IN ('queued', 'leased', 'running', 'stale')
    OR status = 'needs_human' AND may_have_clicked = 0 AND order_known = 0
ORDER BY row;

-- name: task_restore_as_permitted
UPDATE tasks
SET status = 'stale', slot = NULL, lease_owner = NULL, lease_expires_at = NULL, lease_deadline_us = NULL,
    lease_count = :lease_number, may_have_clicked = 1, submit_permitted_at = :at, end_state = NULL, end_status = NULL,
    updated_at = :at
WHERE task_id = :task_id;

-- name: lease_of_the_unknown
INSERT INTO leases (task_id, lease_number, token, worker_id, session_id, journal_id, via, started_at, started_us,
    acknowledged_at, ended_at, ended_us, permitted_at, permit_expires_us)
VALUES (:task_id, :lease_number, :token, :worker_id, :journal_id, :journal_id, 'grpc', :at, :elapsed_us,
    :at, :at, :elapsed_us, :at, :elapsed_us);

-- name: tasks_to_strip
SELECT row, task_id, intent_json FROM tasks
WHERE status IN ('succeeded', 'failed') AND intent_digest IS NULL AND updated_at < :before AND row > :after
    AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.subject = tasks.task_id AND alerts.cleared_at IS NULL)
ORDER BY row LIMIT :count;

-- name: task_strip
UPDATE tasks SET intent_json = '{}', intent_digest = :digest
WHERE task_id = :task_id AND status IN ('succeeded', 'failed') AND intent_digest IS NULL AND updated_at < :before;
