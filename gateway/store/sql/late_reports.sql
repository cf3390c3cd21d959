-- name: late_report_add
INSERT INTO late_reports (task_id, worker_id, state, payable_yen, pay_deadline, site_order_id, evidence_ref, detail,
    error_code, sequence, terminal, terminal_status, refusal_reason, refusal, received_at, told_by, digest)
VALUES (:task_id, :worker_id, :state, :payable_yen, :pay_deadline, :site_order_id, :evidence_ref, :detail,
    :error_code, :sequence, :terminal, :terminal_status, :refusal_reason, :refusal, :at, :told_by, :digest);

-- name: late_report_with_digest
SELECT row FROM late_reports WHERE task_id = :task_id AND digest = :digest;

-- name: late_report_number
-- The row that is the one of this number among those that a token told of a task, if there are so many.
SELECT row FROM late_reports WHERE task_id = :task_id AND told_by = :told_by LIMIT 1 OFFSET :number - 1;

-- name: late_report_that_says
SELECT row FROM late_reports
WHERE task_id = :task_id AND state = :state AND terminal = :terminal
    AND coalesce(terminal_status, '') = coalesce(:terminal_status, '')
    AND coalesce(site_order_id, '') = coalesce(:site_order_id, '')
LIMIT 1;

-- name: late_reports_of_task
SELECT * FROM late_reports WHERE task_id = :task_id ORDER BY row DESC LIMIT :count;
