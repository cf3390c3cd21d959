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
    lease_number = :lease_number, sequence = :sequence, stated = 0
WHERE task_id = :task_id AND state = :state;

-- name: report_fill_in
-- An older report of the same state: it only fills in what the newer one left open.
UPDATE reports
SET payable_yen = coalesce(payable_yen, :payable_yen), pay_deadline = coalesce(pay_deadline, :pay_deadline),
    site_order_id = coalesce(site_order_id, :site_order_id), evidence_ref = coalesce(evidence_ref, :evidence_ref),
    detail = CASE WHEN detail = '' THEN :detail ELSE detail END, error_code = coalesce(error_code, :error_code),
    stated = 0
WHERE task_id = :task_id AND state = :state;

-- name: reports_of_task
SELECT * FROM reports WHERE task_id = :task_id ORDER BY row;

-- name: statement_row_insert
INSERT INTO reports (task_id, state, site_order_id, detail, lease_number, sequence, reported_at, stated)
VALUES (:task_id, :state, :site_order_id, :detail, :lease_number, :sequence, :at, 1);

-- name: statement_number_fill_in
UPDATE reports SET site_order_id = coalesce(site_order_id, :site_order_id) WHERE task_id = :task_id AND state = :state;

-- name: statement_rows_take_back
DELETE FROM reports WHERE task_id = :task_id AND stated = 1;

-- name: statement_number_clear
UPDATE reports SET site_order_id = NULL WHERE task_id = :task_id AND site_order_id = :site_order_id;

-- name: report_latest_of_workers
SELECT state FROM reports WHERE task_id = :task_id AND stated = 0
ORDER BY lease_number DESC, sequence DESC, row DESC LIMIT 1;

-- name: report_amount_of_order
SELECT payable_yen FROM reports
WHERE task_id = :task_id AND state NOT IN ('created', 'in_cart') AND payable_yen IS NOT NULL
ORDER BY lease_number DESC, sequence DESC, row DESC LIMIT 1;
