-- name: rows_newest
SELECT row FROM tasks WHERE row > :above AND row < :below ORDER BY row DESC LIMIT :count;

-- name: rows_oldest
SELECT row FROM tasks WHERE row > :above AND row < :below ORDER BY row LIMIT :count;

-- name: rows_newest_by_status
SELECT row FROM tasks WHERE status = :status AND row > :above AND row < :below ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_status
SELECT row FROM tasks WHERE status = :status AND row > :above AND row < :below ORDER BY row LIMIT :count;

-- name: rows_newest_by_site
SELECT row FROM tasks WHERE site = :site AND row > :above AND row < :below ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_site
SELECT row FROM tasks WHERE site = :site AND row > :above AND row < :below ORDER BY row LIMIT :count;

-- name: rows_newest_by_status_and_site
SELECT row FROM tasks WHERE status = :status AND site = :site AND row > :above AND row < :below
ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_status_and_site
SELECT row FROM tasks WHERE status = :status AND site = :site AND row > :above AND row < :below
ORDER BY row LIMIT :count;

-- name: rows_newest_by_account
SELECT row FROM tasks WHERE account = :account AND account <> '' AND row > :above AND row < :below
ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_account
SELECT row FROM tasks WHERE account = :account AND account <> '' AND row > :above AND row < :below
ORDER BY row LIMIT :count;

-- name: rows_newest_by_status_and_account
SELECT row FROM tasks WHERE status = :status AND account = :account AND account <> '' AND row > :above AND row < :below
ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_status_and_account
SELECT row FROM tasks WHERE status = :status AND account = :account AND account <> '' AND row > :above AND row < :below
ORDER BY row LIMIT :count;

-- name: rows_newest_by_label
SELECT row FROM task_labels WHERE key = :key AND value = :value AND row > :above AND row < :below
ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_by_label
SELECT row FROM task_labels WHERE key = :key AND value = :value AND row > :above AND row < :below
ORDER BY row LIMIT :count;

-- name: rows_newest_held
SELECT row FROM tasks WHERE status = 'queued' AND held_until = :held_until AND row > :above AND row < :below
ORDER BY row DESC LIMIT :count;

-- name: rows_oldest_held
SELECT row FROM tasks WHERE status = 'queued' AND held_until = :held_until AND row > :above AND row < :below
ORDER BY row LIMIT :count;

-- name: rows_newest_by_update
SELECT row, updated_at FROM tasks
WHERE updated_at >= :from_at AND (updated_at, row) < (:to_at, :below) ORDER BY updated_at DESC, row DESC LIMIT :count;

-- name: rows_oldest_by_update
SELECT row, updated_at FROM tasks
WHERE updated_at < :to_at AND (updated_at, row) > (:from_at, :above) ORDER BY updated_at, row LIMIT :count;

-- name: task_filed_next
SELECT row, created_at FROM tasks WHERE row >= :row ORDER BY row LIMIT 1;

-- name: task_filed_last
SELECT coalesce(max(row), 0) AS row FROM tasks;

-- name: rows_by_number
SELECT tasks.row FROM order_numbers JOIN tasks ON tasks.task_id = order_numbers.task_id
WHERE order_numbers.site_order_id = :site_order_id;

-- name: rows_to_decide
-- As many as there are standing alerts; a conflict about an order number concerns all tasks that it was told of.
SELECT tasks.row FROM (
    SELECT task_id FROM alerts WHERE cleared_at IS NULL AND task_id IS NOT NULL
    UNION
    SELECT order_numbers.task_id FROM alerts JOIN order_numbers USING (site, site_order_id)
    WHERE alerts.cleared_at IS NULL
) AS waiting
JOIN tasks ON tasks.task_id = waiting.task_id;

-- name: rows_by_prefix
SELECT row FROM tasks WHERE task_id >= :prefix AND task_id < :behind LIMIT :count;

-- name: tasks_in_rows
-- Rows are the keys of a JSON object, which both engines read alike.
SELECT * FROM tasks WHERE row IN (SELECT CAST(key AS bigint) FROM json_each(:rows));

-- name: rows_matching
-- Of these rows those for which all conditions hold; an empty one holds for every task. Rows and labels are the keys of
-- JSON objects, which both engines read alike; a label is looked for as the task's labels have it.
SELECT row FROM tasks
WHERE row IN (SELECT CAST(key AS bigint) FROM json_each(:rows))
    AND (:statuses = '' OR replace(:statuses, ',' || status || ',', '') <> :statuses)
    AND (:site = '' OR site = :site)
    AND (:account = '' OR account = :account)
    AND (:prefix = '' OR substr(task_id, 1, length(:prefix)) = :prefix)
    AND (:contained = '' OR replace(task_id, :contained, '') <> task_id)
    AND (:site_order_id = '' OR EXISTS (
        SELECT 1 FROM order_numbers
        WHERE order_numbers.task_id = tasks.task_id AND order_numbers.site_order_id = :site_order_id
    ))
    AND (:held_until = '' OR (status = 'queued' AND held_until = :held_until))
    AND (:needs_decision = 0 OR EXISTS (
        SELECT 1 FROM alerts WHERE alerts.task_id = tasks.task_id AND alerts.cleared_at IS NULL
    ) OR EXISTS (
        SELECT 1 FROM order_numbers JOIN alerts USING (site, site_order_id)
        WHERE order_numbers.task_id = tasks.task_id AND alerts.cleared_at IS NULL
    ))
    AND NOT EXISTS (SELECT 1 FROM json_each(:labels) AS wanted WHERE replace(labels_json, wanted.key, '') = labels_json);
