-- name: order_number_add
INSERT INTO order_numbers (site, account, site_order_id, task_id, told_at, stated)
VALUES (:site, :account, :site_order_id, :task_id, :at, :stated)
ON CONFLICT (site, site_order_id, task_id) DO UPDATE
SET stated = CASE WHEN excluded.stated = 0 THEN 0 ELSE order_numbers.stated END;

-- name: order_numbers_of_task
SELECT site_order_id, stated FROM order_numbers WHERE task_id = :task_id ORDER BY told_at, site_order_id;

-- name: order_number_other_tasks
SELECT task_id FROM order_numbers
WHERE site = :site AND site_order_id = :site_order_id AND task_id <> :task_id ORDER BY told_at, task_id LIMIT 10;

-- name: order_numbers_of_other_tasks
SELECT site_order_id FROM order_numbers
WHERE site = :site AND account = :account AND task_id <> :task_id AND told_at >= :since ORDER BY told_at DESC LIMIT :count;

-- name: task_possibly_ordered_without_number
-- Another task of the target that has or may have an order there whose number nobody has told, unless a person found that there
-- is none. What was clicked before :since is not in the window that is looked at.
SELECT 1 AS found FROM tasks
WHERE site = :site AND account = :account AND task_id <> :task_id AND updated_at >= :since
    AND number_known = 0 AND (may_have_clicked = 1 OR order_known = 1 OR order_stated = 1)
    AND NOT (status = 'failed' AND resolved_at IS NOT NULL AND order_known = 0 AND order_stated = 0)
LIMIT 1;

-- name: task_count_numbers
UPDATE tasks SET number_known = CASE
    WHEN EXISTS (SELECT 1 FROM order_numbers WHERE order_numbers.task_id = tasks.task_id) THEN 1 ELSE 0
END
WHERE task_id = :task_id;

-- name: statement_number_take_back
DELETE FROM order_numbers WHERE task_id = :task_id AND site_order_id = :site_order_id AND stated = 1;
