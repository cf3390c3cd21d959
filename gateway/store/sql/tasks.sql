-- name: task_insert
INSERT INTO tasks (task_id, site, account, intent_json, callback_url, labels_json, traceparent, status, queued_us,
    created_at, updated_at, max_total_yen, not_before, not_after, held_until, stop_before_submit, submitted_by,
    approval_reasons, intent_key, same_intent_as)
SELECT :task_id, :site, :account, :intent_json, :callback_url, :labels_json, :traceparent, 'queued', :elapsed_us,
    :at, :at,
    :max_total_yen, :not_before, :not_after, :held_until, :stop_before_submit, :submitted_by, :approval_reasons,
    :intent_key, (
        -- The newest one alone, so that however many came before are not looked at.
        SELECT newest.task_id FROM (
            SELECT task_id, created_at FROM tasks
            WHERE intent_key IS NOT NULL AND status <> 'failed' AND intent_key = :intent_key
            ORDER BY row DESC LIMIT 1
        ) AS newest WHERE newest.created_at >= :same_since
    )
-- Only at a target of which it was written down lately that it is used. So one look more is needed where it was not.
WHERE EXISTS (
    SELECT 1 FROM catalog_targets
    WHERE catalog_targets.site = :site AND catalog_targets.account = :account AND used_us > :target_used_after_us
)
ON CONFLICT (task_id) DO NOTHING
RETURNING same_intent_as;

-- name: task_exists
SELECT 1 AS found FROM tasks WHERE task_id = :task_id;

-- name: task_same_intent
SELECT newest.task_id FROM (
    SELECT task_id, created_at FROM tasks
    WHERE intent_key IS NOT NULL AND status <> 'failed' AND intent_key = :intent_key
    ORDER BY row DESC LIMIT 1
) AS newest WHERE newest.created_at >= :same_since;

-- name: task_get
SELECT * FROM tasks WHERE task_id = :task_id;

-- name: task_oldest_queued_plain
SELECT row FROM tasks
WHERE status = 'queued' AND held_until IS NULL AND site = :site AND account = :account
    AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0 AND approval_reasons IS NULL
        THEN 0 ELSE 1 END = 0
ORDER BY row LIMIT 1;

-- name: tasks_due
-- Whether there is anything that time brings about, in one round trip: mostly there is nothing.
SELECT (SELECT count(*) FROM (
        SELECT 1 FROM tasks WHERE lease_deadline_us IS NOT NULL AND lease_deadline_us <= :elapsed_us LIMIT 1
    ) AS one) AS lapsed,
    (SELECT count(*) FROM (
        SELECT 1 FROM tasks WHERE status = 'queued' AND not_after IS NOT NULL AND may_have_clicked = 0
            AND order_known = 0 AND order_stated = 0 AND not_after < :at LIMIT 1
    ) AS one) AS late,
    (SELECT count(*) FROM (
        SELECT 1 FROM tasks WHERE status = 'queued' AND held_until IS NOT NULL AND held_until <= :at LIMIT 1
    ) AS one) AS held,
    (SELECT count(*) FROM (
        SELECT 1 FROM approvals WHERE ended_at IS NULL AND valid_until < :at LIMIT 1
    ) AS one) AS unapproved;

-- name: tasks_late
SELECT * FROM tasks
WHERE status = 'queued' AND not_after IS NOT NULL AND may_have_clicked = 0 AND order_known = 0 AND order_stated = 0
    AND not_after < :at
ORDER BY not_after, row LIMIT :count;

-- name: tasks_release
UPDATE tasks SET held_until = NULL, queued_us = :elapsed_us WHERE row IN (
    SELECT row FROM tasks WHERE status = 'queued' AND held_until IS NOT NULL AND held_until <= :at
    ORDER BY held_until, row LIMIT :count
)
RETURNING site, account;

-- name: task_next_held
SELECT held_until FROM tasks WHERE status = 'queued' AND held_until IS NOT NULL ORDER BY held_until LIMIT 1;

-- name: task_at
SELECT * FROM tasks WHERE row = :row;

-- name: tasks_active
-- The plus keeps SQLite from walking all tasks in the order of `row`: the few in a slot are found by their index.
SELECT * FROM tasks WHERE slot IS NOT NULL ORDER BY +row LIMIT :count;

-- name: tasks_active_count
SELECT count(*) AS count FROM tasks WHERE slot IS NOT NULL;

-- name: tasks_lapsed
SELECT * FROM tasks
WHERE lease_deadline_us IS NOT NULL AND lease_deadline_us <= :elapsed_us ORDER BY lease_deadline_us, row;

-- name: task_any_active
SELECT task_id FROM tasks WHERE slot IS NOT NULL LIMIT 1;

-- name: task_any_active_on_site
SELECT task_id FROM tasks WHERE slot IS NOT NULL AND site = :site LIMIT 1;

-- name: task_any_active_of_target
SELECT task_id FROM tasks WHERE slot IS NOT NULL AND site = :site AND account = :account LIMIT 1;

-- name: task_move
-- The one statement that changes a status. It finds the task as its caller read it, or moves nothing: besides the status
-- and the lease, what decides whether an order may be there must be unchanged.
UPDATE tasks
SET status = :status, slot = :slot, lease_owner = :lease_owner, lease_expires_at = :lease_expires_at,
    lease_deadline_us = :lease_deadline_us, lease_count = :lease_count, queued_us = :queued_us,
    latest_state = :latest_state, latest_lease = :latest_lease, latest_sequence = :latest_sequence,
    end_state = :end_state, end_status = :end_status, order_known = :order_known,
    may_have_clicked = :may_have_clicked, submit_permitted_at = :submit_permitted_at, resolved_at = :resolved_at,
    order_stated = :order_stated, held_until = :held_until, updated_at = :updated_at
WHERE task_id = :task_id AND status = :from_status AND lease_count = :from_lease_count
    AND may_have_clicked = :from_may_have_clicked AND order_known = :from_order_known
    AND order_stated = :from_order_stated;

-- name: task_mark_order_known
UPDATE tasks SET order_known = 1, updated_at = :at WHERE task_id = :task_id AND order_known = 0;

-- name: task_mark_permitted
UPDATE tasks SET may_have_clicked = 1, submit_permitted_at = :at, terms_json = :terms_json, updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL AND lease_count = :lease_number;

-- name: task_request_cancel
UPDATE tasks SET cancel_requested_at = :at, updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL AND lease_count = :lease_number AND cancel_requested_at IS NULL;

-- name: task_keep_terms
UPDATE tasks SET terms_json = :terms_json, updated_at = :at
WHERE task_id = :task_id AND slot IS NOT NULL AND submit_permitted_at IS NULL;

-- name: task_rebase_deadline
UPDATE tasks SET lease_deadline_us = :deadline_us WHERE task_id = :task_id AND slot IS NOT NULL;

-- name: task_rekey_slot
UPDATE tasks SET slot = :slot WHERE task_id = :task_id AND slot IS NOT NULL;

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

-- name: tasks_slice_by_account
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks
    WHERE account = :account AND account <> '' AND (CAST(:site AS text) IS NULL OR site = :site)
    ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_slice_by_status_and_account
SELECT * FROM tasks WHERE row IN (
    SELECT row FROM tasks
    WHERE status = :status AND account = :account AND account <> '' AND (CAST(:site AS text) IS NULL OR site = :site)
    ORDER BY row DESC LIMIT :count OFFSET :offset
) ORDER BY row DESC;

-- name: tasks_count
SELECT count(*) AS count FROM tasks;

-- name: tasks_count_by_status
SELECT count(*) AS count FROM tasks WHERE status = :status;

-- name: tasks_count_by_site
SELECT count(*) AS count FROM tasks WHERE site = :site;

-- name: tasks_count_by_status_and_site
SELECT count(*) AS count FROM tasks WHERE status = :status AND site = :site;

-- name: tasks_count_by_account
SELECT count(*) AS count FROM tasks
WHERE account = :account AND account <> '' AND (CAST(:site AS text) IS NULL OR site = :site);

-- name: tasks_count_by_status_and_account
SELECT count(*) AS count FROM tasks
WHERE status = :status AND account = :account AND account <> '' AND (CAST(:site AS text) IS NULL OR site = :site);

-- name: tasks_queued_count
SELECT count(*) AS count FROM tasks WHERE status = 'queued';

-- name: tasks_held_count
SELECT count(*) AS count FROM tasks WHERE status = 'queued' AND held_until = :held_until;

-- name: tasks_open
-- Those that may still be, or have been since, in a worker's hand; one that needs a person could have been requeued.
SELECT * FROM tasks
WHERE status IN ('queued', 'leased', 'running', 'stale')
    OR status = 'needs_human' AND may_have_clicked = 0 AND order_known = 0
ORDER BY row;

-- name: task_of_worker
SELECT task_id FROM tasks WHERE slot IS NOT NULL AND lease_owner = :worker_id;

-- name: tasks_to_decide
-- A task waits since its oldest standing alert; a conflict about an order number concerns all tasks that it was told of.
SELECT tasks.*, waiting.first_alert FROM (
    SELECT task_id, min(alert_id) AS first_alert FROM (
        SELECT task_id, alert_id FROM alerts WHERE cleared_at IS NULL AND task_id IS NOT NULL
        UNION ALL
        SELECT order_numbers.task_id, alerts.alert_id FROM alerts JOIN order_numbers USING (site, site_order_id)
        WHERE alerts.cleared_at IS NULL
    ) AS standing
    GROUP BY task_id
) AS waiting
JOIN tasks ON tasks.task_id = waiting.task_id
WHERE (waiting.first_alert, tasks.row) > (:after_alert, :after_row)
ORDER BY waiting.first_alert, tasks.row LIMIT :count;

-- name: tasks_to_strip
SELECT row, task_id, intent_json FROM tasks
WHERE status IN ('succeeded', 'failed') AND intent_digest IS NULL AND updated_at < :before AND row > :after
    AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.task_id = tasks.task_id AND alerts.cleared_at IS NULL)
ORDER BY row LIMIT :count;

-- name: task_strip
UPDATE tasks SET intent_json = '{}', intent_digest = :digest
WHERE task_id = :task_id AND status IN ('succeeded', 'failed') AND intent_digest IS NULL AND updated_at < :before;
