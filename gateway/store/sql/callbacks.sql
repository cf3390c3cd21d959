-- name: callback_file
INSERT INTO callbacks (callback_id, task_id, url, endpoint, type, data_json, created_at, since_us, due_us,
    next_attempt_at)
VALUES (:callback_id, :task_id, :url, :endpoint, :type, :data_json, :at, :elapsed_us, :elapsed_us, :at);

-- name: callback_get
SELECT * FROM callbacks WHERE callback_id = :callback_id;

-- name: callback_endpoints_due
-- Jumps from endpoint to endpoint in the index, so that a long backlog of one costs nothing and hides no other.
WITH RECURSIVE endpoints (endpoint) AS (
    SELECT min(endpoint) FROM callbacks WHERE status = 'pending'
    UNION ALL
    SELECT (SELECT min(callbacks.endpoint) FROM callbacks
            WHERE callbacks.status = 'pending' AND callbacks.endpoint > endpoints.endpoint)
    FROM endpoints WHERE endpoints.endpoint IS NOT NULL
)
SELECT endpoint FROM (
    SELECT endpoint, (SELECT min(callbacks.due_us) FROM callbacks
                      WHERE callbacks.status = 'pending' AND callbacks.endpoint = endpoints.endpoint) AS due_us
    FROM endpoints WHERE endpoint IS NOT NULL
) AS waiting
WHERE due_us <= :elapsed_us ORDER BY due_us LIMIT :count;

-- name: callback_next_due
SELECT callbacks.*, tasks.intent_json FROM callbacks LEFT JOIN tasks ON tasks.task_id = callbacks.task_id
WHERE callbacks.status = 'pending' AND callbacks.endpoint = :endpoint AND callbacks.due_us <= :elapsed_us
ORDER BY callbacks.due_us, callbacks.row LIMIT 1;

-- name: callbacks_failing_count
SELECT count(*) AS count FROM (
    SELECT 1 FROM callbacks WHERE status = 'pending' AND attempts >= :attempts LIMIT :count
) AS failing;

-- name: callback_delivered
UPDATE callbacks
SET status = 'delivered', attempts = attempts + 1, due_us = NULL, next_attempt_at = NULL, last_result = :result
WHERE callback_id = :callback_id AND status = 'pending';

-- name: callback_put_off
UPDATE callbacks
SET attempts = attempts + 1, due_us = :due_us, next_attempt_at = :next_attempt_at, last_result = :result
WHERE callback_id = :callback_id AND status = 'pending';

-- name: callback_give_up
UPDATE callbacks
SET status = 'given_up', attempts = attempts + 1, due_us = NULL, next_attempt_at = NULL, last_result = :result
WHERE callback_id = :callback_id AND status = 'pending';

-- name: callback_replay
UPDATE callbacks
SET status = 'pending', since_us = :elapsed_us, due_us = :elapsed_us, next_attempt_at = :at
WHERE callback_id = :callback_id;

-- name: callbacks_newest
SELECT * FROM callbacks WHERE row < :below ORDER BY row DESC LIMIT :count;

-- name: callbacks_newest_by_status
SELECT * FROM callbacks WHERE status = :status AND row < :below ORDER BY row DESC LIMIT :count;

-- name: callbacks_newest_by_task
SELECT * FROM callbacks WHERE task_id = :task_id AND row < :below ORDER BY row DESC LIMIT :count;

-- name: callbacks_newest_by_status_and_task
SELECT * FROM callbacks WHERE status = :status AND task_id = :task_id AND row < :below ORDER BY row DESC LIMIT :count;
