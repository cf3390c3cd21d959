-- name: task_insert
INSERT INTO tasks (task_id, site, intent_json, callback_url, traceparent, status, queued_us, created_at, updated_at)
VALUES (:task_id, :site, :intent_json, :callback_url, :traceparent, 'queued', :elapsed_us, :at, :at)
ON CONFLICT (task_id) DO NOTHING;

-- name: task_get
SELECT * FROM tasks WHERE task_id = :task_id;

-- name: task_oldest_queued
SELECT * FROM tasks WHERE status = 'queued' AND site = :site ORDER BY row LIMIT 1;

-- name: tasks_active
-- The plus keeps SQLite from walking all tasks in the order of `row`: the few in a slot are found by their index.
SELECT * FROM tasks WHERE slot IS NOT NULL ORDER BY +row;

-- name: tasks_lapsed
SELECT * FROM tasks WHERE slot IS NOT NULL AND lease_deadline_us <= :elapsed_us ORDER BY +row;

-- name: task_in_slot
SELECT task_id FROM tasks WHERE slot = :slot;

-- name: task_take
UPDATE tasks
SET status = 'leased', slot = :slot, lease_owner = :worker_id, lease_expires_at = :expires_at,
    lease_deadline_us = :deadline_us, lease_count = lease_count + 1,
    may_have_clicked = max(may_have_clicked, :may_have_clicked), updated_at = :at
WHERE task_id = :task_id AND status = :from_status;

-- name: task_give_back
UPDATE tasks
SET status = 'queued', slot = NULL, lease_owner = NULL, lease_expires_at = NULL, lease_deadline_us = NULL,
    lease_count = lease_count - 1, updated_at = :at,
    may_have_clicked = EXISTS (
        SELECT 1 FROM leases
        WHERE leases.task_id = tasks.task_id AND (leases.via = 'rest' OR leases.permitted_at IS NOT NULL)
    )
WHERE task_id = :task_id AND status = 'leased' AND lease_count = :lease_number;

-- name: task_extend
UPDATE tasks
SET lease_expires_at = :expires_at, lease_deadline_us = :deadline_us, updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL AND lease_count = :lease_number;

-- name: task_rebase_deadline
UPDATE tasks SET lease_deadline_us = :deadline_us WHERE task_id = :task_id AND slot IS NOT NULL;

-- name: task_rekey_slot
UPDATE tasks SET slot = :slot WHERE task_id = :task_id AND slot IS NOT NULL;

-- name: task_progress
UPDATE tasks
SET status = :status, latest_state = :latest_state, latest_lease = :latest_lease, latest_sequence = :latest_sequence,
    order_known = max(order_known, :order_known), updated_at = :at
WHERE task_id = :task_id AND status = :from_status;

-- name: task_finish
UPDATE tasks
SET status = :status, slot = NULL, lease_owner = NULL, lease_expires_at = NULL, lease_deadline_us = NULL,
    end_state = :end_state, end_status = :status, updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL;

-- name: task_turn_stale
UPDATE tasks
SET status = 'stale', slot = NULL, lease_owner = NULL, lease_expires_at = NULL, lease_deadline_us = NULL,
    updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL;

-- name: task_cancel
UPDATE tasks SET status = 'failed', updated_at = :at
WHERE task_id = :task_id AND status = 'queued' AND lease_count = 0;

-- name: task_mark_order_known
UPDATE tasks SET order_known = 1, updated_at = :at WHERE task_id = :task_id AND order_known = 0;

-- name: task_mark_permitted
UPDATE tasks SET may_have_clicked = 1, submit_permitted_at = :at, updated_at = :at WHERE task_id = :task_id;

-- name: tasks_newest
SELECT * FROM tasks WHERE row < :below ORDER BY row DESC LIMIT :count;

-- name: tasks_newest_by_status
SELECT * FROM tasks WHERE status = :status AND row < :below ORDER BY row DESC LIMIT :count;

-- name: tasks_newest_by_site
SELECT * FROM tasks WHERE site = :site AND row < :below ORDER BY row DESC LIMIT :count;

-- name: tasks_newest_by_status_and_site
SELECT * FROM tasks WHERE status = :status AND site = :site AND row < :below ORDER BY row DESC LIMIT :count;

-- name: tasks_slice
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_slice_by_status
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks WHERE status = :status ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_slice_by_site
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks WHERE site = :site ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_slice_by_status_and_site
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks WHERE status = :status AND site = :site ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_count
SELECT count(*) AS count FROM tasks;

-- name: tasks_count_by_status
SELECT count(*) AS count FROM tasks WHERE status = :status;

-- name: tasks_count_by_site
SELECT count(*) AS count FROM tasks WHERE site = :site;

-- name: tasks_count_by_status_and_site
SELECT count(*) AS count FROM tasks WHERE status = :status AND site = :site;

-- name: tasks_queued_count
SELECT count(*) AS count FROM tasks WHERE status = 'queued';

-- name: tasks_queued_oldest
SELECT task_id, site, created_at, queued_us FROM tasks WHERE status = 'queued' ORDER BY row LIMIT :count;
