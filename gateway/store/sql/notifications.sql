-- name: notification_add
INSERT INTO notifications (channel, urgency, alert_id, edge, since_us, due_us)
VALUES (:channel, :urgency, :alert_id, :edge, :due_us, :due_us)
ON CONFLICT (channel, alert_id, edge) DO NOTHING;

-- name: notifications_digest_begun
-- When the digest of a channel goes out that is being gathered, and how much it holds.
SELECT count(*) AS count, min(due_us) AS due_us FROM (
    SELECT due_us FROM notifications WHERE channel = :channel AND urgency = 'digest' LIMIT :count
) AS gathered;

-- name: notifications_due
SELECT notifications.*, alerts.kind, alerts.subject, alerts.task_id, alerts.message, alerts.raised_at, alerts.cleared_at
FROM notifications JOIN alerts USING (alert_id)
WHERE channel = :channel AND urgency = :urgency AND due_us <= :elapsed_us ORDER BY due_us, notification_id LIMIT :count;

-- name: notification_put_off
UPDATE notifications SET attempts = attempts + 1, due_us = :due_us WHERE notification_id = :notification_id;

-- name: notification_remove
DELETE FROM notifications WHERE notification_id = :notification_id;

-- name: notification_channel_told
INSERT INTO notification_channels (channel, failures, told, tried_at)
VALUES (:channel, :failed, :told, :at)
ON CONFLICT (channel) DO UPDATE SET failures = CASE WHEN :failed = 0 THEN 0 ELSE notification_channels.failures + 1 END,
    told = excluded.told, tried_at = excluded.tried_at;

-- name: notification_channels
SELECT * FROM notification_channels ORDER BY channel;
