-- Orders that a second person has to agree to: why one needs it, and what was decided about it.

-- Why it needs an approval, words with commas between them; NULL: it needs none.
ALTER TABLE tasks ADD COLUMN approval_reasons TEXT CHECK (approval_reasons <> '')
    CHECK (approval_reasons IS NULL OR submitted_by IS NOT NULL);

CREATE TABLE approvals (
    task_id TEXT NOT NULL REFERENCES tasks (task_id),
    approval_number INTEGER NOT NULL CHECK (approval_number >= 1),
    verdict TEXT NOT NULL CHECK (verdict IN ('approved', 'denied')),
    decided_by TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- Of the intent as it is stored, which never changes.
    intent_hash TEXT NOT NULL,
    max_total_yen INTEGER CHECK (max_total_yen >= 1),
    valid_until TEXT CHECK (valid_until > decided_at),
    -- The lease whose permit used it.
    used_by_lease INTEGER,
    -- It stands until then: until it is used, has run out, or another decision takes its place.
    ended_at TEXT,
    PRIMARY KEY (task_id, approval_number),
    FOREIGN KEY (task_id, used_by_lease) REFERENCES leases (task_id, lease_number),
    CHECK ((verdict = 'approved') = (max_total_yen IS NOT NULL)),
    CHECK ((verdict = 'approved') = (valid_until IS NOT NULL)),
    CHECK (verdict = 'approved' OR (ended_at IS NOT NULL AND used_by_lease IS NULL)),
    CHECK (used_by_lease IS NULL OR ended_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX approvals_one_standing ON approvals (task_id) WHERE ended_at IS NULL;
CREATE INDEX approvals_running_out ON approvals (valid_until, task_id) WHERE ended_at IS NULL;

CREATE TRIGGER tasks_approval_stays BEFORE UPDATE OF approval_reasons ON tasks
WHEN new.approval_reasons IS NOT old.approval_reasons
BEGIN SELECT RAISE(ABORT, 'a task keeps why it needs an approval'); END;

-- Whichever program queues it, also one that knows of no approval.
CREATE TRIGGER tasks_unapproved_begin_held BEFORE INSERT ON tasks
WHEN new.approval_reasons IS NOT NULL AND new.status = 'queued' AND new.held_until IS NOT '9999-12-31T23:59:59.999999Z'
BEGIN SELECT RAISE(ABORT, 'a task is held until it is approved'); END;

CREATE TRIGGER tasks_unapproved_are_held BEFORE UPDATE OF status, held_until ON tasks
WHEN new.approval_reasons IS NOT NULL AND new.status = 'queued' AND new.held_until IS NOT '9999-12-31T23:59:59.999999Z'
    AND NOT EXISTS (SELECT 1 FROM approvals WHERE task_id = new.task_id AND ended_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'a task is held until it is approved'); END;

CREATE TRIGGER approvals_by_somebody_else BEFORE INSERT ON approvals
WHEN new.verdict = 'approved'
    AND EXISTS (SELECT 1 FROM tasks WHERE task_id = new.task_id AND submitted_by = new.decided_by)
BEGIN SELECT RAISE(ABORT, 'nobody approves an order that they filed'); END;

CREATE TRIGGER approvals_raise_no_cap BEFORE INSERT ON approvals
WHEN EXISTS (SELECT 1 FROM tasks WHERE task_id = new.task_id AND max_total_yen < new.max_total_yen)
BEGIN SELECT RAISE(ABORT, 'an approval raises no cap'); END;

CREATE TRIGGER approvals_end_once BEFORE UPDATE ON approvals
WHEN old.ended_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an approval is used once, and ends once'); END;

CREATE TRIGGER approvals_stay BEFORE UPDATE OF task_id, approval_number, verdict, decided_by, decided_at, reason,
    intent_hash, max_total_yen, valid_until ON approvals
BEGIN SELECT RAISE(ABORT, 'an approval never changes'); END;

CREATE TRIGGER approvals_are_never_deleted BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'an approval is never deleted'); END;

-- Whichever program grants it, also one that knows of no approval.
CREATE TRIGGER leases_permit_approved BEFORE UPDATE OF permitted_at ON leases
WHEN old.permitted_at IS NULL AND new.permitted_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM tasks WHERE task_id = new.task_id AND approval_reasons IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM approvals WHERE task_id = new.task_id AND used_by_lease = new.lease_number
            AND new.permit_payable_yen <= max_total_yen AND new.permitted_at <= valid_until
    )
BEGIN SELECT RAISE(ABORT, 'a permit lacks its approval'); END;

-- A callback tells that an order waits for its approval.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''order.stale'', ''order.test''', '''order.stale'', ''order.approval_required'', ''order.test''')
WHERE name = 'callbacks';
PRAGMA writable_schema = RESET;

-- Of a target, first those without a condition that the permit judges: now also without the need of an approval.
DROP INDEX tasks_ready_of_target;
-- The status stands first, although it is the same in all of them: else the planner may prefer an index of all tasks.
CREATE INDEX tasks_ready_of_target ON tasks (
    status, site, account,
    (CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0 AND approval_reasons IS NULL
        THEN 0 ELSE 1 END),
    row
) WHERE status = 'queued' AND held_until IS NULL;

DROP TRIGGER tasks_move_in_their_lane;
CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status, held_until ON tasks
WHEN (new.status = 'queued' AND new.held_until IS NULL) <> (old.status = 'queued' AND old.held_until IS NULL)
    OR (new.slot IS NULL) <> (old.slot IS NULL)
BEGIN
    INSERT INTO lanes (site, account, head_row, active_row)
    VALUES (new.site, new.account,
        (
            SELECT min(row) FROM (
                SELECT * FROM (
                    SELECT row FROM tasks INDEXED BY tasks_ready_of_target
                    WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            AND approval_reasons IS NULL THEN 0 ELSE 1 END = 0
                    ORDER BY row LIMIT 1
                )
                UNION ALL
                SELECT * FROM (
                    SELECT row FROM tasks INDEXED BY tasks_ready_of_target
                    WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            AND approval_reasons IS NULL THEN 0 ELSE 1 END = 1
                    ORDER BY row LIMIT 1
                )
            )
        ),
        (
            SELECT row FROM tasks INDEXED BY tasks_active_of_target
            WHERE slot IS NOT NULL AND site = new.site AND account = new.account LIMIT 1
        ))
    ON CONFLICT (site, account) DO UPDATE SET head_row = excluded.head_row, active_row = excluded.active_row;
END;
