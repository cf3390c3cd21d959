-- Proposals: risky decisions that one person has proposed and another has to confirm.

CREATE TABLE proposals (
    proposal_id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('resolve', 'approve', 'resume')),
    -- None where it is about dispatch.
    task_id TEXT REFERENCES tasks (task_id),
    decision_json TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- On what it rests, as it was when it was proposed; where that has changed nothing is decided by it.
    basis TEXT NOT NULL,
    proposed_by TEXT NOT NULL,
    proposed_at TEXT NOT NULL,
    valid_until TEXT NOT NULL CHECK (valid_until > proposed_at),
    status TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'confirmed', 'withdrawn', 'expired', 'obsolete')),
    closed_by TEXT,
    closed_at TEXT,
    closed_reason TEXT NOT NULL DEFAULT '',
    CHECK ((kind = 'resume') = (task_id IS NULL)),
    CHECK ((status = 'waiting') = (closed_at IS NULL)),
    CHECK ((closed_at IS NULL) = (closed_by IS NULL)),
    CHECK (status <> 'confirmed' OR closed_by <> proposed_by)
) STRICT;
CREATE UNIQUE INDEX proposals_one_of_a_task ON proposals (task_id) WHERE closed_at IS NULL;
CREATE UNIQUE INDEX proposals_one_of_dispatch ON proposals (kind) WHERE closed_at IS NULL AND task_id IS NULL;
CREATE INDEX proposals_waiting ON proposals (proposal_id) WHERE closed_at IS NULL;

CREATE TRIGGER proposals_begin_waiting BEFORE INSERT ON proposals
WHEN new.status <> 'waiting'
BEGIN SELECT RAISE(ABORT, 'a proposal waits at first'); END;

CREATE TRIGGER proposals_close_once BEFORE UPDATE ON proposals
WHEN old.closed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a proposal is closed once'); END;

CREATE TRIGGER proposals_stay BEFORE UPDATE OF proposal_id, kind, task_id, decision_json, reason, basis, proposed_by,
    proposed_at, valid_until ON proposals
BEGIN SELECT RAISE(ABORT, 'a proposal never changes'); END;

CREATE TRIGGER proposals_are_never_deleted BEFORE DELETE ON proposals
BEGIN SELECT RAISE(ABORT, 'a proposal is never deleted'); END;
