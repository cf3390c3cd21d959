-- name: event_append
-- An event of a task is found by its row: those of one time lie together, while ids lie anywhere.
INSERT INTO events
    (occurred_at, subject, kind, actor, worker_id, status_before, status_after, reason, details_json, task_row)
VALUES (:at, :subject, :kind, :actor, :worker_id, :before, :after, :reason, :details_json,
    (SELECT row FROM tasks WHERE task_id = :subject));

-- name: event_last_of_kind
-- Among the events that moved no status, as refusals do: only those are in the index. The next one too.
SELECT details_json FROM events
WHERE subject = :subject AND kind = :kind AND actor = :actor AND status_before = status_after
ORDER BY sequence DESC LIMIT 1;

-- name: event_number_of_kind
SELECT sequence FROM events
WHERE subject = :subject AND kind = :kind AND actor = :actor AND status_before = status_after
ORDER BY sequence LIMIT 1 OFFSET :number - 1;

-- name: event_last
SELECT sequence, occurred_at FROM events ORDER BY sequence DESC LIMIT 1;

-- name: events_subjects_after
-- The inner query keeps the planner on the sequence; for DISTINCT alone it would read the whole index by subject.
SELECT DISTINCT subject FROM (
    SELECT subject FROM events WHERE sequence > :sequence AND subject <> '' ORDER BY sequence LIMIT 10000
) AS latest;

-- name: events_newest
SELECT * FROM events
WHERE sequence < :below AND sequence >= :first AND (:kinds = '' OR replace(:kinds, ',' || kind || ',', '') <> :kinds)
ORDER BY sequence DESC LIMIT :count;

-- name: events_newest_of_subject
-- Those of its task, and those that were written down while there was no such task, or by an older program.
SELECT * FROM events
WHERE task_row = (SELECT row FROM tasks WHERE task_id = :subject) AND sequence < :below AND sequence >= :first
    AND (:kinds = '' OR replace(:kinds, ',' || kind || ',', '') <> :kinds)
UNION ALL
SELECT * FROM events
WHERE subject = :subject AND task_row IS NULL AND sequence < :below AND sequence >= :first
    AND (:kinds = '' OR replace(:kinds, ',' || kind || ',', '') <> :kinds)
ORDER BY sequence DESC LIMIT :count;

-- name: event_from
SELECT sequence, occurred_at FROM events WHERE sequence >= :sequence ORDER BY sequence LIMIT 1;

-- name: events_moves_by_step
SELECT substr(occurred_at, 1, CAST(:length AS INTEGER)) AS step,
    sum(CASE WHEN status_after = 'queued' AND coalesce(status_before, '') <> 'queued' THEN 1 ELSE 0 END) AS entered,
    sum(CASE WHEN status_before = 'queued' AND coalesce(status_after, '') <> 'queued' THEN 1 ELSE 0 END) AS went,
    sum(CASE WHEN replace(:kinds, ',' || kind || ',', '') <> :kinds THEN 1 ELSE 0 END) AS of_kinds
FROM events WHERE sequence >= :first AND sequence <= :last GROUP BY 1;
