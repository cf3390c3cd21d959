-- name: query_insert
INSERT INTO account_queries (query_id, site, account, kind, params_json, traceparent, status, lifetime_ends_us,
    created_at, updated_at)
VALUES (:query_id, :site, :account, :kind, :params_json, :traceparent, :status, :lifetime_ends_us, :at, :at);

-- name: query_get
SELECT * FROM account_queries WHERE query_id = :query_id;

-- name: query_result_get
SELECT result_json FROM query_results WHERE query_id = :query_id;

-- name: query_oldest_queued
-- The plus keeps the index by age out: the queue is walked in its order.
SELECT * FROM account_queries
WHERE status = 'queued' AND site = :site AND account = :account AND +lifetime_ends_us > :elapsed_us ORDER BY row LIMIT 1;

-- name: query_move
UPDATE account_queries
SET status = :status, lease_owner = :lease_owner, lease_session = :lease_session, lease_expires_at = :lease_expires_at,
    lease_deadline_us = :lease_deadline_us, attempts = :attempts, error_code = :error_code,
    error_message = :error_message, completed_at = :completed_at, completed_us = :completed_us, updated_at = :updated_at
WHERE query_id = :query_id AND status = :from_status AND attempts = :from_attempts;

-- name: query_attempt_insert
INSERT INTO query_attempts (query_id, attempt, worker_id, started_at, bound_to)
VALUES (:query_id, :attempt, :worker_id, :at, :bound_to);

-- name: query_attempt_hand_again
UPDATE query_attempts SET handed_again = 1 WHERE query_id = :query_id AND attempt = :attempt;

-- name: query_attempt_undo
DELETE FROM query_attempts WHERE query_id = :query_id AND attempt = :attempt AND handed_again = 0;

-- name: query_attempt_get
SELECT * FROM query_attempts WHERE query_id = :query_id AND attempt = :attempt;

-- name: query_attempts_of_worker
SELECT attempt FROM query_attempts WHERE query_id = :query_id AND worker_id = :worker_id
    AND (bound_to IS NULL OR bound_to = :identity) ORDER BY attempt;

-- name: query_result_insert
INSERT INTO query_results (query_id, result_json) VALUES (:query_id, :result_json);

-- name: queries_of_session
SELECT * FROM account_queries WHERE lease_session = :session_id ORDER BY row;

-- name: queries_leased
SELECT * FROM account_queries WHERE lease_deadline_us IS NOT NULL ORDER BY row;

-- name: queries_lease_due
SELECT * FROM account_queries
WHERE lease_deadline_us IS NOT NULL AND lease_deadline_us <= :elapsed_us ORDER BY lease_deadline_us LIMIT :count;

-- name: queries_too_old
SELECT * FROM account_queries
WHERE status = 'queued' AND lifetime_ends_us <= :elapsed_us ORDER BY lifetime_ends_us LIMIT :count;

-- name: queries_prune
DELETE FROM account_queries
WHERE row IN (
    SELECT row FROM account_queries
    WHERE completed_us IS NOT NULL AND completed_us <= :completed_before_us ORDER BY completed_us LIMIT :count
);

-- name: queries_open
SELECT * FROM account_queries WHERE status IN ('queued', 'leased') ORDER BY row;

-- name: query_rebase_lifetime
UPDATE account_queries SET lifetime_ends_us = :lifetime_ends_us WHERE query_id = :query_id;

-- name: queries_newest
SELECT * FROM account_queries WHERE row < :below ORDER BY row DESC LIMIT :count OFFSET :skip;

-- name: queries_newest_by_status
SELECT * FROM account_queries
WHERE status = :status AND row < :below ORDER BY row DESC LIMIT :count OFFSET :skip;

-- name: queries_newest_by_kind
SELECT * FROM account_queries WHERE kind = :kind AND row < :below ORDER BY row DESC LIMIT :count OFFSET :skip;

-- name: queries_newest_by_status_and_kind
SELECT * FROM account_queries
WHERE status = :status AND kind = :kind AND row < :below ORDER BY row DESC LIMIT :count OFFSET :skip;

-- name: queries_count
SELECT CAST(coalesce(sum(count), 0) AS bigint) AS count FROM query_counts
WHERE (CAST(:status AS text) IS NULL OR status = :status) AND (CAST(:kind AS text) IS NULL OR kind = :kind);

-- name: queries_queued_count
SELECT count FROM query_counts WHERE status = 'queued';
