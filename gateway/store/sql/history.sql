-- name: event_append
INSERT INTO events (occurred_at, subject, kind, actor, worker_id, status_before, status_after, reason, details_json)
VALUES (:at, :subject, :kind, :actor, :worker_id, :before, :after, :reason, :details_json);

-- name: event_last_of_kind
SELECT details_json FROM events WHERE subject = :subject AND kind = :kind ORDER BY sequence DESC LIMIT 1;

-- name: event_same
SELECT sequence FROM events
WHERE subject = :subject AND kind = :kind AND details_json = :details_json LIMIT 1;

-- name: event_last
SELECT sequence, occurred_at FROM events ORDER BY sequence DESC LIMIT 1;

-- name: restored_since
SELECT sequence FROM events WHERE subject = '' AND kind = 'restore' AND occurred_at >= :since LIMIT 1;

-- name: events_subjects_after
-- The inner query keeps the planner on the sequence; for DISTINCT alone it would read the whole index by subject.
SELECT DISTINCT subject FROM (
    SELECT subject FROM events WHERE sequence > :sequence AND subject <> '' ORDER BY sequence LIMIT 10000
);

-- name: alert_raise
INSERT INTO alerts (kind, subject, message, raised_at) VALUES (:kind, :subject, :message, :at)
ON CONFLICT (kind, subject) WHERE cleared_at IS NULL DO NOTHING
RETURNING alert_id;

-- name: alert_clear
UPDATE alerts SET cleared_at = :at WHERE alert_id = :alert_id AND cleared_at IS NULL;

-- name: alert_standing
SELECT alert_id FROM alerts WHERE kind = :kind AND subject = :subject AND cleared_at IS NULL;
