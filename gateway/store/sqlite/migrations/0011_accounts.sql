-- Accounts: a task and an account query belong to a target, which is a site and an account on it. The empty account is
-- the site's only one, as everywhere before this version.

ALTER TABLE tasks ADD COLUMN account TEXT NOT NULL DEFAULT ''
    CHECK (account = '' OR length(account) <= 64 AND account GLOB '[A-Za-z0-9]*' AND account NOT GLOB '*[^A-Za-z0-9._-]*')
    -- A task occupies no slot of another target. The last form is its own, for a lease that outlives a change of scope.
    CHECK (slot IS NULL OR slot IN ('global', 'site:' || site, 'account:' || site || ':' || account,
        'site:' || site || ':' || task_id));
ALTER TABLE account_queries ADD COLUMN account TEXT NOT NULL DEFAULT ''
    CHECK (account = '' OR length(account) <= 64 AND account GLOB '[A-Za-z0-9]*' AND account NOT GLOB '*[^A-Za-z0-9._-]*');
ALTER TABLE order_numbers ADD COLUMN account TEXT NOT NULL DEFAULT '';
-- What a worker named when it last asked for an order, comma-separated; no site: it was not kept yet.
ALTER TABLE workers ADD COLUMN sites TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN accounts TEXT NOT NULL DEFAULT '';

-- The queue of a target, whatever else there is of it.
CREATE INDEX tasks_queued_of_target ON tasks (site, account, row) WHERE status = 'queued';
CREATE INDEX tasks_active_of_target ON tasks (site, account) WHERE slot IS NOT NULL;
CREATE INDEX tasks_by_lease_deadline ON tasks (lease_deadline_us) WHERE lease_deadline_us IS NOT NULL;
-- Lists of an account. Where there is only the empty one these two stay empty.
CREATE INDEX tasks_by_account ON tasks (account, row) WHERE account <> '';
CREATE INDEX tasks_by_status_and_account ON tasks (status, account, row) WHERE account <> '';

DROP INDEX account_queries_by_status_and_site;
CREATE INDEX account_queries_queued_of_target ON account_queries (site, account, row) WHERE status = 'queued';

DROP INDEX order_numbers_by_time;
CREATE INDEX order_numbers_by_time ON order_numbers (site, account, told_at);
DROP INDEX tasks_ordered_without_number;
CREATE INDEX tasks_ordered_without_number ON tasks (site, account, updated_at)
WHERE number_known = 0 AND (may_have_clicked = 1 OR order_known = 1 OR order_stated = 1);

-- A row a target: its oldest queued task and one that is in execution, kept by triggers. So whoever may be served next
-- is found without walking the targets.
CREATE TABLE lanes (
    site TEXT NOT NULL,
    account TEXT NOT NULL,
    head_row INTEGER,
    active_row INTEGER,
    PRIMARY KEY (site, account)
) STRICT, WITHOUT ROWID;

CREATE INDEX lanes_ready ON lanes (site, head_row) WHERE head_row IS NOT NULL AND active_row IS NULL;

CREATE TRIGGER tasks_join_a_lane AFTER INSERT ON tasks
BEGIN
    INSERT INTO lanes (site, account, head_row, active_row)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN new.row END,
        CASE WHEN new.slot IS NOT NULL THEN new.row END)
    ON CONFLICT (site, account) DO UPDATE
    SET head_row = coalesce(head_row, excluded.head_row), active_row = coalesce(active_row, excluded.active_row)
    -- Behind others in the queue there is nothing to write.
    WHERE (head_row IS NULL AND excluded.head_row IS NOT NULL) OR (active_row IS NULL AND excluded.active_row IS NOT NULL);
END;

CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status ON tasks
WHEN (new.status = 'queued') <> (old.status = 'queued') OR (new.slot IS NULL) <> (old.slot IS NULL)
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT row FROM tasks INDEXED BY tasks_queued_of_target
            WHERE status = 'queued' AND site = new.site AND account = new.account ORDER BY row LIMIT 1
        ),
        active_row = (
            SELECT row FROM tasks INDEXED BY tasks_active_of_target
            WHERE slot IS NOT NULL AND site = new.site AND account = new.account LIMIT 1
        )
    WHERE site = new.site AND account = new.account;
END;

-- How many queries of a target wait, kept by triggers.
CREATE TABLE query_lanes (
    site TEXT NOT NULL,
    account TEXT NOT NULL,
    queued INTEGER NOT NULL CHECK (queued >= 0),
    PRIMARY KEY (site, account)
) STRICT, WITHOUT ROWID;

CREATE INDEX query_lanes_ready ON query_lanes (queued) WHERE queued > 0;

CREATE TRIGGER account_queries_join_a_lane AFTER INSERT ON account_queries
BEGIN
    INSERT INTO query_lanes (site, account, queued)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN 1 ELSE 0 END)
    ON CONFLICT (site, account) DO UPDATE SET queued = queued + excluded.queued;
END;

CREATE TRIGGER account_queries_move_in_their_lane AFTER UPDATE OF status ON account_queries
WHEN (new.status = 'queued') <> (old.status = 'queued')
BEGIN
    UPDATE query_lanes SET queued = queued + CASE WHEN new.status = 'queued' THEN 1 ELSE -1 END
    WHERE site = new.site AND account = new.account;
END;

-- The catalogue by target. Each that was ever named is known; `filed_us`: when its last round was filed.
CREATE TABLE catalog_targets (
    site TEXT NOT NULL,
    account TEXT NOT NULL,
    filed_us INTEGER,
    PRIMARY KEY (site, account)
) STRICT, WITHOUT ROWID;

CREATE INDEX catalog_targets_by_round ON catalog_targets (site, filed_us);

CREATE TRIGGER lanes_are_known_to_the_catalogue AFTER INSERT ON lanes
BEGIN
    INSERT INTO catalog_targets (site, account) VALUES (new.site, new.account)
    ON CONFLICT (site, account) DO NOTHING;
END;
CREATE TRIGGER query_lanes_are_known_to_the_catalogue AFTER INSERT ON query_lanes
BEGIN
    INSERT INTO catalog_targets (site, account) VALUES (new.site, new.account)
    ON CONFLICT (site, account) DO NOTHING;
END;

INSERT INTO catalog_targets (site, account, filed_us) SELECT site, '', filed_us FROM catalog_sites;
DROP TABLE catalog_sites;

INSERT INTO lanes (site, account, head_row, active_row)
SELECT site, '', min(CASE WHEN status = 'queued' THEN row END), min(CASE WHEN slot IS NOT NULL THEN row END)
FROM tasks GROUP BY site;
INSERT INTO query_lanes (site, account, queued)
SELECT site, '', sum(CASE WHEN status = 'queued' THEN 1 ELSE 0 END) FROM account_queries GROUP BY site;

ALTER TABLE catalog_queries ADD COLUMN account TEXT NOT NULL DEFAULT '';
DROP INDEX catalog_queries_by_site;
CREATE INDEX catalog_queries_by_target ON catalog_queries (site, account, order_number);

-- An order number stands once a target: an order of one account is none of another one's.
CREATE TABLE catalog_orders_of_targets (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    site TEXT NOT NULL,
    account TEXT NOT NULL,
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
    UNIQUE (site, account, order_number)
) STRICT;

INSERT INTO catalog_orders_of_targets (row, site, account, order_number, shop_id, shop_name, order_date,
    delivery_status, order_state, discovered_at, detail_asked_us, detail_fetched_at, last_seen_at, seen)
SELECT row, site, '', order_number, shop_id, shop_name, order_date,
    delivery_status, order_state, discovered_at, detail_asked_us, detail_fetched_at, last_seen_at, seen
FROM catalog_orders ORDER BY row;
DROP TABLE catalog_orders;
ALTER TABLE catalog_orders_of_targets RENAME TO catalog_orders;

CREATE INDEX catalog_orders_by_site ON catalog_orders (site, seen);
CREATE INDEX catalog_orders_by_account ON catalog_orders (account, seen) WHERE account <> '';
-- Those whose detail is worth reading: new, or not final.
CREATE INDEX catalog_orders_open ON catalog_orders (site, account, detail_asked_us, row)
    WHERE order_state IS NULL OR order_state NOT IN ('delivered', 'cancelled');

CREATE TABLE catalog_discrepancies_of_targets (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('unknown_to_tasks', 'missing_on_site', 'state_moved_on')),
    site TEXT NOT NULL,
    account TEXT NOT NULL,
    order_number TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_state TEXT,
    site_state TEXT,
    found_at TEXT NOT NULL,
    UNIQUE (kind, site, account, order_number, task_id),
    CHECK ((kind = 'unknown_to_tasks') = (task_id = ''))
) STRICT;

INSERT INTO catalog_discrepancies_of_targets (row, kind, site, account, order_number, task_id, task_state, site_state,
    found_at)
SELECT row, kind, site, '', order_number, task_id, task_state, site_state, found_at
FROM catalog_discrepancies ORDER BY row;
DROP TABLE catalog_discrepancies;
ALTER TABLE catalog_discrepancies_of_targets RENAME TO catalog_discrepancies;

CREATE INDEX catalog_discrepancies_of_order ON catalog_discrepancies (site, account, order_number);
