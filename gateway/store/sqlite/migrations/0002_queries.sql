-- Account queries and the order catalogue. Reading has no side effect, so the rules here are the opposite of the order
-- queue's (docs/two-queues.md); the two share no table.
-- Times named *_at are fixed-width UTC text, for people; times named *_us are the service clock in microseconds.

CREATE TABLE account_queries (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    query_id TEXT NOT NULL UNIQUE CHECK (length(query_id) BETWEEN 1 AND 128),
    site TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('order_list', 'order_detail')),
    params_json TEXT NOT NULL,
    traceparent TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL CHECK (status IN ('queued', 'leased', 'succeeded', 'failed', 'expired')),
    lease_owner TEXT,
    lease_session TEXT,
    lease_expires_at TEXT,
    lease_deadline_us INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- Until when it may be handed out.
    lifetime_ends_us INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    completed_at TEXT,
    completed_us INTEGER,
    error_code INTEGER,
    error_message TEXT,
    -- A lease and its status go together, and so do all parts of a lease, of an end and of an error.
    CHECK ((status = 'leased') = (lease_owner IS NOT NULL)),
    CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CHECK ((lease_owner IS NULL) = (lease_deadline_us IS NULL)),
    CHECK (lease_session IS NULL OR lease_owner IS NOT NULL),
    CHECK (lease_owner IS NULL OR attempts > 0),
    CHECK ((status IN ('succeeded', 'failed', 'expired')) = (completed_at IS NOT NULL)),
    CHECK ((completed_at IS NULL) = (completed_us IS NULL)),
    CHECK ((status IN ('failed', 'expired')) = (error_message IS NOT NULL)),
    CHECK ((error_message IS NULL) = (error_code IS NULL))
) STRICT;

-- Whole indexes: a partial one on the queue is not reliably chosen.
CREATE INDEX account_queries_by_status_and_site ON account_queries (status, site, row);
CREATE INDEX account_queries_by_status_and_age ON account_queries (status, lifetime_ends_us);
CREATE INDEX account_queries_lapsed ON account_queries (lease_deadline_us) WHERE lease_deadline_us IS NOT NULL;
CREATE INDEX account_queries_of_session ON account_queries (lease_session) WHERE lease_session IS NOT NULL;
CREATE INDEX account_queries_ended ON account_queries (completed_us) WHERE completed_us IS NOT NULL;
CREATE INDEX account_queries_by_status ON account_queries (status, row);
CREATE INDEX account_queries_by_kind ON account_queries (kind, row);
CREATE INDEX account_queries_by_status_and_kind ON account_queries (status, kind, row);

CREATE TRIGGER account_queries_end_once BEFORE UPDATE OF status ON account_queries WHEN old.completed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an ended query never moves on'); END;

CREATE TRIGGER account_queries_open_ones_stay BEFORE DELETE ON account_queries WHEN old.completed_at IS NULL
BEGIN SELECT RAISE(ABORT, 'only an ended query is deleted'); END;

-- Who held which attempt: a result is fenced by it.
CREATE TABLE query_attempts (
    query_id TEXT NOT NULL REFERENCES account_queries (query_id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    worker_id TEXT NOT NULL,
    started_at TEXT NOT NULL,
    -- Its session was given it a second time, so the worker may have it whatever became of the first stream.
    handed_again INTEGER NOT NULL DEFAULT 0 CHECK (handed_again IN (0, 1)),
    PRIMARY KEY (query_id, attempt)
) STRICT, WITHOUT ROWID;

-- Apart from the queries, so that lists never read through results.
CREATE TABLE query_results (
    query_id TEXT PRIMARY KEY REFERENCES account_queries (query_id) ON DELETE CASCADE,
    result_json TEXT NOT NULL
) STRICT;

-- How many queries there are, kept by triggers, so that a total costs the same with ten as with a million.
CREATE TABLE query_counts (
    status TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (status, kind)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER account_queries_count_new AFTER INSERT ON account_queries
BEGIN
    INSERT INTO query_counts (status, kind, count) VALUES (new.status, new.kind, 1)
    ON CONFLICT (status, kind) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER account_queries_count_moved AFTER UPDATE OF status ON account_queries WHEN new.status <> old.status
BEGIN
    UPDATE query_counts SET count = count - 1 WHERE status = old.status AND kind = old.kind;
    INSERT INTO query_counts (status, kind, count) VALUES (new.status, new.kind, 1)
    ON CONFLICT (status, kind) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER account_queries_count_gone AFTER DELETE ON account_queries
BEGIN
    UPDATE query_counts SET count = count - 1 WHERE status = old.status AND kind = old.kind;
END;

-- Orders that the site shows. `seen` grows with every sighting, so the latest seen come first in a fixed order.
CREATE TABLE catalog_orders (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    site TEXT NOT NULL,
    order_number TEXT NOT NULL CHECK (order_number <> ''),
    shop_id TEXT NOT NULL DEFAULT '',
    shop_name TEXT NOT NULL DEFAULT '',
    order_date TEXT,
    delivery_status TEXT NOT NULL DEFAULT '',
    order_state TEXT CHECK (order_state IN
        ('created', 'in_cart', 'ordered', 'awaiting_payment', 'paid', 'shipped', 'delivered', 'cancelled')),
    discovered_at TEXT NOT NULL,
    detail_asked_us INTEGER,
    detail_fetched_at TEXT,
    last_seen_at TEXT NOT NULL,
    seen INTEGER NOT NULL UNIQUE,
    UNIQUE (site, order_number)
) STRICT;

CREATE INDEX catalog_orders_by_site ON catalog_orders (site, seen);
-- Those whose detail is worth reading: new, or not final.
CREATE INDEX catalog_orders_open ON catalog_orders (site, detail_asked_us, row)
    WHERE order_state IS NULL OR order_state NOT IN ('delivered', 'cancelled');

-- Which queries the catalogue filed.
CREATE TABLE catalog_queries (
    query_id TEXT PRIMARY KEY REFERENCES account_queries (query_id) ON DELETE CASCADE,
    site TEXT NOT NULL,
    -- The order whose detail is asked for; NULL for a list.
    order_number TEXT,
    -- Where the window of a list begins.
    since_at TEXT,
    CHECK ((order_number IS NULL) <> (since_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX catalog_queries_by_site ON catalog_queries (site, order_number);

-- When a site's last round was filed.
CREATE TABLE catalog_sites (
    site TEXT PRIMARY KEY,
    filed_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What differs between the site and the tasks, and since when; each difference once.
CREATE TABLE catalog_discrepancies (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('unknown_to_tasks', 'missing_on_site', 'state_moved_on')),
    site TEXT NOT NULL,
    order_number TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_state TEXT,
    site_state TEXT,
    found_at TEXT NOT NULL,
    UNIQUE (kind, site, order_number, task_id),
    CHECK ((kind = 'unknown_to_tasks') = (task_id = ''))
) STRICT;

CREATE INDEX catalog_discrepancies_of_order ON catalog_discrepancies (site, order_number);

-- The order numbers that tasks told in a span of time.
CREATE INDEX reports_telling_numbers ON reports (reported_at) WHERE site_order_id IS NOT NULL;

-- Which state is later than which, for the catalogue alone.
CREATE VIEW order_state_ranks (state, rank) AS
VALUES ('created', 0), ('in_cart', 1), ('ordered', 2), ('awaiting_payment', 3), ('paid', 4), ('shipped', 5),
    ('delivered', 6), ('cancelled', 7);
