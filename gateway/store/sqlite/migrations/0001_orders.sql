-- Orders: tasks, their leases, the mirror of reports, the history, and what watches over them.
-- Times named *_at are fixed-width UTC text, for people; times named *_us are the service clock in microseconds, by
-- which every deadline is judged (gateway/domain/instant.py).
-- Rows are numbered in the order in which they came and nothing here is ever deleted, so a number is never used twice.

CREATE TABLE tasks (
    row INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL UNIQUE CHECK (length(task_id) BETWEEN 1 AND 128),
    site TEXT NOT NULL,
    intent_json TEXT NOT NULL,
    callback_url TEXT,
    traceparent TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'leased', 'running', 'succeeded', 'failed', 'needs_human', 'stale')),
    slot TEXT,
    lease_owner TEXT,
    lease_expires_at TEXT,
    lease_deadline_us INTEGER,
    lease_count INTEGER NOT NULL DEFAULT 0 CHECK (lease_count >= 0),
    latest_state TEXT CHECK (latest_state IN
        ('created', 'in_cart', 'ordered', 'awaiting_payment', 'paid', 'shipped', 'delivered', 'cancelled')),
    latest_lease INTEGER NOT NULL DEFAULT 0,
    latest_sequence INTEGER NOT NULL DEFAULT 0,
    end_state TEXT,
    end_status TEXT CHECK (end_status IN ('succeeded', 'failed', 'needs_human')),
    order_known INTEGER NOT NULL DEFAULT 0 CHECK (order_known IN (0, 1)),
    may_have_clicked INTEGER NOT NULL DEFAULT 0 CHECK (may_have_clicked IN (0, 1)),
    submit_permitted_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- A lease and an active status go together, and so do all parts of a lease.
    CHECK ((status IN ('leased', 'running')) = (slot IS NOT NULL)),
    CHECK ((slot IS NULL) = (lease_owner IS NULL)),
    CHECK ((slot IS NULL) = (lease_expires_at IS NULL)),
    CHECK ((slot IS NULL) = (lease_deadline_us IS NULL)),
    CHECK (slot IS NULL OR lease_count > 0),
    CHECK ((end_state IS NULL) = (end_status IS NULL)),
    CHECK (submit_permitted_at IS NULL OR may_have_clicked = 1)
) STRICT;

-- At most one task in execution a slot: the database itself makes a second one impossible.
CREATE UNIQUE INDEX tasks_one_active_a_slot ON tasks (slot) WHERE slot IS NOT NULL;
-- The queue of a site, and lists of a status and a site; a partial index on the queue is not reliably chosen.
CREATE INDEX tasks_by_status_and_site ON tasks (status, site, row);
CREATE INDEX tasks_by_status ON tasks (status, row);
CREATE INDEX tasks_by_site ON tasks (site, row);

CREATE TRIGGER tasks_are_never_deleted BEFORE DELETE ON tasks
BEGIN SELECT RAISE(ABORT, 'a task is never deleted'); END;

CREATE TABLE leases (
    task_id TEXT NOT NULL REFERENCES tasks (task_id),
    lease_number INTEGER NOT NULL CHECK (lease_number >= 1),
    token TEXT NOT NULL UNIQUE,
    worker_id TEXT NOT NULL,
    session_id TEXT,
    journal_id TEXT,
    via TEXT NOT NULL CHECK (via IN ('grpc', 'rest')),
    started_at TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    -- To how many answers it was given, less those that never reached their transport; at 0 it is undone.
    given_count INTEGER NOT NULL DEFAULT 1 CHECK (given_count >= 0),
    acknowledged_at TEXT,
    ended_at TEXT,
    ended_us INTEGER,
    -- One permit a lease: the columns hold one, and a trigger keeps it.
    permitted_at TEXT,
    permit_expires_us INTEGER,
    permit_evidence_ref TEXT,
    PRIMARY KEY (task_id, lease_number),
    CHECK ((via = 'grpc') = (session_id IS NOT NULL)),
    CHECK ((via = 'grpc') = (journal_id IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (ended_us IS NULL)),
    CHECK ((permitted_at IS NULL) = (permit_expires_us IS NULL)),
    CHECK (permitted_at IS NULL OR acknowledged_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_open_by_session ON leases (session_id) WHERE ended_at IS NULL AND session_id IS NOT NULL;

CREATE TRIGGER leases_permit_once BEFORE UPDATE OF permitted_at, permit_expires_us ON leases
WHEN old.permitted_at IS NOT NULL
    AND (new.permitted_at IS NOT old.permitted_at OR new.permit_expires_us IS NOT old.permit_expires_us)
BEGIN SELECT RAISE(ABORT, 'a permit is given once and never changed'); END;

CREATE TRIGGER leases_end_once BEFORE UPDATE OF ended_at ON leases WHEN old.ended_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a lease ends once'); END;

CREATE TRIGGER leases_acknowledged_stay BEFORE DELETE ON leases WHEN old.acknowledged_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an acknowledged lease is never undone'); END;

CREATE TABLE reports (
    row INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (task_id),
    state TEXT NOT NULL CHECK (state IN
        ('created', 'in_cart', 'ordered', 'awaiting_payment', 'paid', 'shipped', 'delivered', 'cancelled')),
    payable_yen INTEGER CHECK (payable_yen >= 0),
    pay_deadline TEXT,
    site_order_id TEXT,
    evidence_ref TEXT,
    detail TEXT NOT NULL,
    error_code INTEGER,
    lease_number INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    reported_at TEXT NOT NULL,
    UNIQUE (task_id, state)
) STRICT;

CREATE INDEX reports_with_number ON reports (reported_at) WHERE site_order_id IS NOT NULL;
CREATE INDEX reports_by_site_order_id ON reports (site_order_id) WHERE site_order_id IS NOT NULL;

-- Every order number that was ever told of a task, also by a report that was refused or overwritten.
CREATE TABLE order_numbers (
    site TEXT NOT NULL,
    site_order_id TEXT NOT NULL,
    task_id TEXT NOT NULL REFERENCES tasks (task_id),
    told_at TEXT NOT NULL,
    PRIMARY KEY (site, site_order_id, task_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX order_numbers_by_task ON order_numbers (task_id);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    occurred_at TEXT NOT NULL,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    worker_id TEXT,
    status_before TEXT,
    status_after TEXT,
    reason TEXT NOT NULL DEFAULT '',
    details_json TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX events_by_subject ON events (subject, sequence);

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;

CREATE TABLE workers (
    worker_id TEXT PRIMARY KEY,
    last_seen_at TEXT NOT NULL,
    last_seen_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Where dispatch is paused; the empty site stands for all sites.
CREATE TABLE pauses (
    site TEXT PRIMARY KEY,
    paused_at TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason <> '')
) STRICT, WITHOUT ROWID;

CREATE TABLE alerts (
    alert_id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    message TEXT NOT NULL,
    raised_at TEXT NOT NULL,
    cleared_at TEXT
) STRICT;

-- Raised once: an alert that stands is not raised again.
CREATE UNIQUE INDEX alerts_one_standing ON alerts (kind, subject) WHERE cleared_at IS NULL;

-- Where the service clock stood, so that it goes on after a restart.
CREATE TABLE clock_anchor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    boot_us INTEGER NOT NULL,
    elapsed_us INTEGER NOT NULL,
    utc TEXT NOT NULL
) STRICT;
