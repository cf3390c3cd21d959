-- name: approval_insert
INSERT INTO approvals (task_id, approval_number, verdict, decided_by, decided_at, reason, intent_hash, max_total_yen,
    valid_until, ended_at)
VALUES (:task_id, :approval_number, :verdict, :decided_by, :at, :reason, :intent_hash, :max_total_yen, :valid_until,
    :ended_at);

-- name: approval_latest
SELECT * FROM approvals WHERE task_id = :task_id ORDER BY approval_number DESC LIMIT 1;

-- name: approval_use
UPDATE approvals SET used_by_lease = :lease_number, ended_at = :at
WHERE task_id = :task_id AND approval_number = :approval_number AND ended_at IS NULL;

-- name: approval_end
UPDATE approvals SET ended_at = :at WHERE task_id = :task_id AND ended_at IS NULL;

-- name: approvals_run_out
SELECT task_id FROM approvals WHERE ended_at IS NULL AND valid_until < :at ORDER BY valid_until, task_id LIMIT :count;
