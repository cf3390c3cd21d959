-- Accounts: a task and an account query belong to a target, which is a site and an account on it. The empty account is
-- the site's only one, as everywhere before this version.

ALTER TABLE tasks
    ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT ''
        CHECK (account = '' OR account ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    -- A task occupies no slot of another target. The last form is its own, for a lease that outlives a change of scope.
    ADD CHECK (slot IS NULL OR slot IN ('global', 'site:' || site, 'account:' || site || ':' || account,
        'site:' || site || ':' || task_id));
ALTER TABLE account_queries
    ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT ''
        CHECK (account = '' OR account ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$');
ALTER TABLE order_numbers ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT '';
-- What a worker named when it last asked for an order, comma-separated; no site: it was not kept yet.
ALTER TABLE workers
    ADD COLUMN sites text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN accounts text COLLATE "C" NOT NULL DEFAULT '';

-- The queue of a target, whatever else there is of it.
DROP INDEX tasks_queue_of_site;
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
    site text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    head_row bigint,
    active_row bigint,
    PRIMARY KEY (site, account)
);

CREATE INDEX lanes_ready ON lanes (site, head_row, account) WHERE head_row IS NOT NULL AND active_row IS NULL;

CREATE FUNCTION join_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lanes (site, account, head_row, active_row)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN new.row END,
        CASE WHEN new.slot IS NOT NULL THEN new.row END)
    ON CONFLICT (site, account) DO UPDATE
    SET head_row = coalesce(lanes.head_row, excluded.head_row),
        active_row = coalesce(lanes.active_row, excluded.active_row)
    -- Behind others in the queue there is nothing to write.
    WHERE (lanes.head_row IS NULL AND excluded.head_row IS NOT NULL)
        OR (lanes.active_row IS NULL AND excluded.active_row IS NOT NULL);
    RETURN NULL;
END $$;

CREATE TRIGGER tasks_join_a_lane AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION join_a_lane();

CREATE FUNCTION move_in_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT tasks.row FROM tasks
            WHERE tasks.status = 'queued' AND tasks.site = new.site AND tasks.account = new.account
            ORDER BY tasks.row LIMIT 1
        ),
        active_row = (
            SELECT tasks.row FROM tasks
            WHERE tasks.slot IS NOT NULL AND tasks.site = new.site AND tasks.account = new.account LIMIT 1
        )
    WHERE lanes.site = new.site AND lanes.account = new.account;
    RETURN NULL;
END $$;

CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status ON tasks FOR EACH ROW
WHEN ((new.status = 'queued') <> (old.status = 'queued') OR (new.slot IS NULL) <> (old.slot IS NULL))
EXECUTE FUNCTION move_in_a_lane();

-- How many queries of a target wait, kept by triggers.
CREATE TABLE query_lanes (
    site text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    queued bigint NOT NULL CHECK (queued >= 0),
    PRIMARY KEY (site, account)
);

CREATE INDEX query_lanes_ready ON query_lanes (queued) WHERE queued > 0;

CREATE FUNCTION join_a_query_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO query_lanes (site, account, queued)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN 1 ELSE 0 END)
    ON CONFLICT (site, account) DO UPDATE SET queued = query_lanes.queued + excluded.queued;
    RETURN NULL;
END $$;

CREATE TRIGGER account_queries_join_a_lane AFTER INSERT ON account_queries
FOR EACH ROW EXECUTE FUNCTION join_a_query_lane();

CREATE FUNCTION move_in_a_query_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE query_lanes SET queued = queued + CASE WHEN new.status = 'queued' THEN 1 ELSE -1 END
    WHERE site = new.site AND account = new.account;
    RETURN NULL;
END $$;

CREATE TRIGGER account_queries_move_in_their_lane AFTER UPDATE OF status ON account_queries FOR EACH ROW
WHEN ((new.status = 'queued') <> (old.status = 'queued'))
EXECUTE FUNCTION move_in_a_query_lane();

-- The catalogue by target. Each that was ever named is known; `filed_us`: when its last round was filed.
CREATE TABLE catalog_targets (
    site text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    filed_us bigint,
    PRIMARY KEY (site, account)
);

CREATE INDEX catalog_targets_by_round ON catalog_targets (site, filed_us);

CREATE FUNCTION know_a_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalog_targets (site, account) VALUES (new.site, new.account)
    ON CONFLICT (site, account) DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER lanes_are_known_to_the_catalogue AFTER INSERT ON lanes
FOR EACH ROW EXECUTE FUNCTION know_a_target();
CREATE TRIGGER query_lanes_are_known_to_the_catalogue AFTER INSERT ON query_lanes
FOR EACH ROW EXECUTE FUNCTION know_a_target();

INSERT INTO catalog_targets (site, account, filed_us) SELECT site, '', filed_us FROM catalog_sites;
DROP TABLE catalog_sites;

INSERT INTO lanes (site, account, head_row, active_row)
SELECT site, '', min(CASE WHEN status = 'queued' THEN tasks.row END), min(CASE WHEN slot IS NOT NULL THEN tasks.row END)
FROM tasks GROUP BY site;
INSERT INTO query_lanes (site, account, queued)
SELECT site, '', sum(CASE WHEN status = 'queued' THEN 1 ELSE 0 END) FROM account_queries GROUP BY site;

ALTER TABLE catalog_queries ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX catalog_queries_by_site;
CREATE INDEX catalog_queries_by_target ON catalog_queries (site, account, order_number);

-- An order number stands once a target: an order of one account is none of another one's.
ALTER TABLE catalog_orders ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE catalog_orders ALTER COLUMN account DROP DEFAULT;
ALTER TABLE catalog_orders DROP CONSTRAINT catalog_orders_site_order_number_key;
ALTER TABLE catalog_orders ADD UNIQUE (site, account, order_number);
CREATE INDEX catalog_orders_by_account ON catalog_orders (account, seen) WHERE account <> '';
DROP INDEX catalog_orders_open;
-- Those whose detail is worth reading: new, or not final.
CREATE INDEX catalog_orders_open ON catalog_orders (site, account, detail_asked_us NULLS FIRST, row)
    WHERE order_state IS NULL OR order_state NOT IN ('delivered', 'cancelled');

ALTER TABLE catalog_discrepancies ADD COLUMN account text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE catalog_discrepancies ALTER COLUMN account DROP DEFAULT;
ALTER TABLE catalog_discrepancies DROP CONSTRAINT catalog_discrepancies_kind_site_order_number_task_id_key;
ALTER TABLE catalog_discrepancies ADD UNIQUE (kind, site, account, order_number, task_id);
DROP INDEX catalog_discrepancies_of_order;
CREATE INDEX catalog_discrepancies_of_order ON catalog_discrepancies (site, account, order_number);
