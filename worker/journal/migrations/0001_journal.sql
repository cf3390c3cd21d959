-- The journal, first version. Moments are UTC text of fixed width. Amounts are yen.

-- One row: this journal's name for the gateway, made once.
CREATE TABLE journal (
    singleton  INTEGER PRIMARY KEY CHECK (singleton = 1),
    journal_id TEXT NOT NULL CHECK (length(journal_id) BETWEEN 16 AND 64),
    created_at TEXT NOT NULL
) STRICT;

CREATE TRIGGER journal_is_kept BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal keeps its name'); END;
CREATE TRIGGER journal_is_not_deleted BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal keeps its name'); END;

-- Every task that this worker ever took. status `open`: not ended by this worker.
CREATE TABLE orders (
    task_id         TEXT PRIMARY KEY,
    site            TEXT NOT NULL,
    intent_json     TEXT NOT NULL,
    task_created_at TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('created', 'in_cart', 'ordered', 'awaiting_payment', 'paid',
                                                   'shipped', 'delivered', 'cancelled')),
    status          TEXT NOT NULL CHECK (status IN ('open', 'succeeded', 'failed', 'needs_human')),
    lease_token     TEXT NOT NULL,
    run_folder      TEXT NOT NULL,
    site_order_id   TEXT,
    payable_yen     INTEGER CHECK (payable_yen >= 0),
    pay_deadline    TEXT,
    evidence_ref    TEXT,
    detail          TEXT NOT NULL DEFAULT '',
    error_code      INTEGER,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL,
    ended_at        TEXT CHECK ((ended_at IS NULL) = (status = 'open')),
    deadline_alerted_at TEXT,
    -- What was placed on the site is never told as failed.
    CHECK (status <> 'failed' OR (state IN ('created', 'in_cart') AND site_order_id IS NULL))
) STRICT;

CREATE INDEX orders_to_monitor ON orders (updated_at)
    WHERE status <> 'open' AND site_order_id IS NOT NULL AND state NOT IN ('delivered', 'cancelled');

CREATE TRIGGER orders_are_not_deleted BEFORE DELETE ON orders
BEGIN SELECT RAISE(ABORT, 'an order is never forgotten'); END;
CREATE TRIGGER orders_keep_their_end BEFORE UPDATE OF status ON orders WHEN OLD.status <> 'open' AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'an ended order keeps its end'); END;

-- Every lease that was ever taken, so that a lease handed over twice is seen.
CREATE TABLE leases (
    lease_token TEXT PRIMARY KEY,
    task_id     TEXT NOT NULL REFERENCES orders (task_id),
    lease_count INTEGER NOT NULL CHECK (lease_count >= 1),
    taken_at    TEXT NOT NULL
) STRICT;

-- What happened, appended for ever.
CREATE TABLE transitions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id      TEXT NOT NULL REFERENCES orders (task_id),
    at           TEXT NOT NULL,
    event        TEXT NOT NULL,
    from_state   TEXT,
    to_state     TEXT NOT NULL,
    from_status  TEXT,
    to_status    TEXT NOT NULL,
    evidence_ref TEXT,
    detail       TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX transitions_by_task ON transitions (task_id, id);
CREATE TRIGGER transitions_are_kept BEFORE UPDATE ON transitions
BEGIN SELECT RAISE(ABORT, 'transitions are append-only'); END;
CREATE TRIGGER transitions_are_not_deleted BEFORE DELETE ON transitions
BEGIN SELECT RAISE(ABORT, 'transitions are append-only'); END;

-- Index of the evidence files on disk, appended for ever.
CREATE TABLE evidence (
    path         TEXT PRIMARY KEY,
    task_id      TEXT NOT NULL REFERENCES orders (task_id),
    evidence_ref TEXT NOT NULL,
    sha256       TEXT NOT NULL CHECK (length(sha256) = 64),
    bytes        INTEGER NOT NULL CHECK (bytes >= 0),
    written_at   TEXT NOT NULL
) STRICT;

CREATE INDEX evidence_by_task ON evidence (task_id, path);
CREATE TRIGGER evidence_is_kept BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'the evidence index is append-only'); END;
CREATE TRIGGER evidence_is_not_deleted BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'the evidence index is append-only'); END;

-- The click record: written before the one irreversible click, at most once a task, by anyone on this journal.
CREATE TABLE clicks (
    task_id     TEXT PRIMARY KEY REFERENCES orders (task_id),
    lease_token TEXT NOT NULL REFERENCES leases (lease_token),
    recorded_at TEXT NOT NULL
) STRICT;

CREATE TRIGGER clicks_are_kept BEFORE UPDATE ON clicks
BEGIN SELECT RAISE(ABORT, 'a click record is never changed'); END;
CREATE TRIGGER clicks_are_not_deleted BEFORE DELETE ON clicks
BEGIN SELECT RAISE(ABORT, 'a click record is never deleted'); END;

-- The payment record: written before paying, at most once a task, and only for a click on this journal.
CREATE TABLE payments (
    task_id       TEXT PRIMARY KEY REFERENCES clicks (task_id),
    site_order_id TEXT NOT NULL,
    recorded_at   TEXT NOT NULL
) STRICT;

CREATE TRIGGER payments_are_kept BEFORE UPDATE ON payments
BEGIN SELECT RAISE(ABORT, 'a payment record is never changed'); END;
CREATE TRIGGER payments_are_not_deleted BEFORE DELETE ON payments
BEGIN SELECT RAISE(ABORT, 'a payment record is never deleted'); END;

-- Reports for the gateway. `sequence` is the contract's; outcome tells what the gateway made of it.
CREATE TABLE outbox (
    sequence        INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id         TEXT NOT NULL REFERENCES orders (task_id),
    lease_token     TEXT NOT NULL REFERENCES leases (lease_token),
    state           TEXT NOT NULL,
    payable_yen     INTEGER,
    pay_deadline    TEXT,
    site_order_id   TEXT,
    evidence_ref    TEXT,
    detail          TEXT NOT NULL,
    error_code      INTEGER,
    terminal_status TEXT CHECK (terminal_status IN ('succeeded', 'failed', 'needs_human')),
    created_at      TEXT NOT NULL,
    settled_at      TEXT,
    outcome         TEXT CHECK (outcome IN ('accepted', 'recorded_late', 'refused')),
    answer          TEXT NOT NULL DEFAULT '',
    CHECK ((settled_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX outbox_waiting ON outbox (task_id, sequence) WHERE settled_at IS NULL;
CREATE INDEX outbox_by_task ON outbox (task_id, sequence);
CREATE TRIGGER outbox_settles_once BEFORE UPDATE ON outbox WHEN OLD.settled_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a settled report is never changed'); END;
CREATE TRIGGER outbox_is_not_deleted BEFORE DELETE ON outbox
BEGIN SELECT RAISE(ABORT, 'reports are kept'); END;

-- A person's wish that a stale task be taken again, handed to the resident process.
CREATE TABLE reclaim_wishes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id    TEXT NOT NULL,
    filed_at   TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('waiting', 'taken', 'done', 'refused', 'interrupted')),
    note       TEXT NOT NULL DEFAULT '',
    updated_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX one_open_wish_a_task ON reclaim_wishes (task_id) WHERE status IN ('waiting', 'taken');
