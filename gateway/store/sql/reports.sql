-- name: report_get
SELECT * FROM reports WHERE task_id = :task_id AND state = :state;

-- name: report_insert
INSERT INTO reports (task_id, state, payable_yen, pay_deadline, site_order_id, evidence_ref, detail, error_code,
    lease_number, sequence, reported_at)
VALUES (:task_id, :state, :payable_yen, :pay_deadline, :site_order_id, :evidence_ref, :detail, :error_code,
    :lease_number, :sequence, :at);

-- name: report_overwrite
UPDATE reports
SET payable_yen = coalesce(:payable_yen, payable_yen), pay_deadline = coalesce(:pay_deadline, pay_deadline),
    site_order_id = coalesce(:site_order_id, site_order_id), evidence_ref = coalesce(:evidence_ref, evidence_ref),
    detail = CASE WHEN :detail = '' THEN detail ELSE :detail END, error_code = coalesce(:error_code, error_code),
    lease_number = :lease_number, sequence = :sequence
WHERE task_id = :task_id AND state = :state;

-- An older report of the same state: it only fills in what the newer one left open.
-- name: report_fill_in
UPDATE reports
SET payable_yen = coalesce(payable_yen, :payable_yen), pay_deadline = coalesce(pay_deadline, :pay_deadline),
    site_order_id = coalesce(site_order_id, :site_order_id), evidence_ref = coalesce(evidence_ref, :evidence_ref),
    detail = CASE WHEN detail = '' THEN :detail ELSE detail END, error_code = coalesce(error_code, :error_code)
WHERE task_id = :task_id AND state = :state;

-- name: reports_of_task
SELECT * FROM reports WHERE task_id = :task_id ORDER BY row;

-- name: order_number_add
INSERT INTO order_numbers (site, site_order_id, task_id, told_at) VALUES (:site, :site_order_id, :task_id, :at)
ON CONFLICT (site, site_order_id, task_id) DO NOTHING;

-- name: order_numbers_of_task
SELECT site_order_id FROM order_numbers WHERE task_id = :task_id ORDER BY told_at, site_order_id;

-- name: order_number_other_tasks
SELECT task_id FROM order_numbers
WHERE site = :site AND site_order_id = :site_order_id AND task_id <> :task_id ORDER BY told_at, task_id LIMIT 10;

-- name: task_possibly_ordered_without_number
-- Another task that may have an order on the site whose number no accepted report has told. What was clicked before
-- :since is not in the window that is looked at.
SELECT 1 AS found FROM tasks
WHERE site = :site AND task_id <> :task_id AND updated_at >= :since
    AND (may_have_clicked = 1 OR order_known = 1) AND status NOT IN ('succeeded', 'failed')
    AND NOT EXISTS (SELECT 1 FROM reports WHERE reports.task_id = tasks.task_id AND reports.site_order_id IS NOT NULL)
LIMIT 1;

-- name: report_numbers_of_other_tasks
-- CROSS JOIN keeps the planner on the recent reports; it would begin with every task of the site.
SELECT DISTINCT reports.site_order_id FROM reports CROSS JOIN tasks USING (task_id)
WHERE tasks.site = :site AND tasks.task_id <> :task_id AND reports.site_order_id IS NOT NULL
    AND reports.reported_at >= :since
ORDER BY +reports.row DESC LIMIT :count;
