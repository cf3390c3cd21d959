-- name: late_report_add
INSERT INTO late_reports (task_id, worker_id, state, payable_yen, pay_deadline, site_order_id, evidence_ref, detail,
    error_code, sequence, terminal, terminal_status, refusal_reason, refusal, received_at)
SELECT :task_id, :worker_id, :state, :payable_yen, :pay_deadline, :site_order_id, :evidence_ref, :detail,
    :error_code, :sequence, :terminal, :terminal_status, :refusal_reason, :refusal, :at
WHERE NOT EXISTS (
    SELECT 1 FROM late_reports
    WHERE task_id = :task_id AND worker_id = :worker_id AND state = :state AND payable_yen IS :payable_yen
        AND pay_deadline IS :pay_deadline AND site_order_id IS :site_order_id AND evidence_ref IS :evidence_ref
        AND detail = :detail AND error_code IS :error_code AND sequence IS :sequence AND terminal = :terminal
        AND terminal_status IS :terminal_status AND refusal_reason = :refusal_reason
);

-- name: late_reports_of_task
SELECT * FROM late_reports WHERE task_id = :task_id ORDER BY row DESC LIMIT :count;
