-- name: lease_insert
INSERT INTO leases (task_id, lease_number, token, worker_id, session_id, journal_id, via, started_at, started_us,
    bound_to)
VALUES (:task_id, :lease_number, :token, :worker_id, :session_id, :journal_id, :via, :at, :elapsed_us, :bound_to);

-- name: lease_get
SELECT * FROM leases WHERE task_id = :task_id AND lease_number = :lease_number;

-- name: leases_open_latest
SELECT coalesce(max(CASE
    WHEN leases.permit_expires_us > leases.started_us THEN leases.permit_expires_us ELSE leases.started_us
END), 0) AS latest_us
FROM tasks JOIN leases ON leases.task_id = tasks.task_id AND leases.lease_number = tasks.lease_count
WHERE tasks.slot IS NOT NULL;

-- name: leases_settle_later
-- Of tasks that are not decided yet: what has ended in them may be waited for.
UPDATE leases SET ended_us = :later_us
    + CASE WHEN permit_expires_us > ended_us THEN permit_expires_us ELSE ended_us END
WHERE ended_us IS NOT NULL AND (via = 'rest' OR permit_expires_us IS NOT NULL) AND task_id IN (
    SELECT task_id FROM tasks
    WHERE status IN ('queued', 'leased', 'running', 'stale', 'needs_human') AND (may_have_clicked = 1 OR order_known = 1)
);

-- name: leases_of_task
SELECT * FROM leases WHERE task_id = :task_id ORDER BY lease_number;

-- name: lease_unacknowledged_of_session
SELECT * FROM leases WHERE session_id = :session_id AND ended_at IS NULL AND acknowledged_at IS NULL LIMIT 1;

-- name: lease_acknowledge
UPDATE leases SET acknowledged_at = :at
WHERE task_id = :task_id AND lease_number = :lease_number AND ended_at IS NULL AND acknowledged_at IS NULL;

-- name: lease_end
UPDATE leases SET ended_at = :at, ended_us = :elapsed_us
WHERE task_id = :task_id AND lease_number = :lease_number AND ended_at IS NULL;

-- name: lease_give_again
UPDATE leases SET given_count = given_count + 1
WHERE task_id = :task_id AND lease_number = :lease_number AND ended_at IS NULL AND acknowledged_at IS NULL;

-- name: lease_take_back
UPDATE leases SET given_count = given_count - 1
WHERE task_id = :task_id AND token = :token AND ended_at IS NULL AND acknowledged_at IS NULL AND given_count > 0
RETURNING given_count;

-- name: lease_undo
DELETE FROM leases
WHERE task_id = :task_id AND token = :token AND ended_at IS NULL AND acknowledged_at IS NULL AND given_count = 0;

-- name: lease_permit
UPDATE leases
SET permitted_at = :at, permit_expires_us = :expires_us, permit_payable_yen = :payable_yen,
    permit_terms_json = :terms_json
WHERE task_id = :task_id AND lease_number = :lease_number AND ended_at IS NULL AND permitted_at IS NULL;

-- name: lease_verified
UPDATE leases
SET verification_verdict = :verdict, verification_covers_window = :covers_window,
    verification_evidence_ref = :evidence_ref, verification_begun_us = :begun_us
WHERE task_id = :task_id AND lease_number = :lease_number AND ended_at IS NULL;

-- name: lease_of_the_unknown
INSERT INTO leases (task_id, lease_number, token, worker_id, session_id, journal_id, via, started_at, started_us,
    acknowledged_at, ended_at, ended_us, permitted_at, permit_expires_us)
VALUES (:task_id, :lease_number, :token, :worker_id, :journal_id, :journal_id, 'grpc', :at, :elapsed_us,
    :at, :at, :elapsed_us, :at, :elapsed_us);
