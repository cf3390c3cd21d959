-- name: proposal_add
INSERT INTO proposals (kind, task_id, decision_json, reason, basis, proposed_by, proposed_at, valid_until)
VALUES (:kind, :task_id, :decision_json, :reason, :basis, :by, :at, :valid_until)
RETURNING *;

-- name: proposal_get
SELECT * FROM proposals WHERE proposal_id = :proposal_id;

-- name: proposal_waiting_about_task
SELECT * FROM proposals WHERE task_id = :task_id AND closed_at IS NULL;

-- name: proposal_waiting_about_dispatch
SELECT * FROM proposals WHERE kind = 'resume' AND closed_at IS NULL AND task_id IS NULL;

-- name: proposals_newest
SELECT * FROM proposals WHERE proposal_id < :below ORDER BY proposal_id DESC LIMIT :count;

-- name: proposals_waiting
SELECT * FROM proposals WHERE closed_at IS NULL AND proposal_id < :below ORDER BY proposal_id DESC LIMIT :count;

-- name: proposals_perhaps_lapsed
-- What a statement rests on is when its task last changed; the other kinds are few, and judged by themselves.
SELECT proposals.* FROM proposals LEFT JOIN tasks USING (task_id)
WHERE closed_at IS NULL AND (valid_until < :at OR kind <> 'resolve' OR tasks.updated_at <> basis)
ORDER BY proposal_id LIMIT :count;

-- name: proposals_waiting_count
SELECT count(*) AS count FROM (SELECT 1 FROM proposals WHERE closed_at IS NULL LIMIT :count) AS waiting;

-- name: proposal_close
UPDATE proposals SET status = :status, closed_by = :by, closed_at = :at, closed_reason = :reason
WHERE proposal_id = :proposal_id AND closed_at IS NULL;
