-- Targets are bounded by who named them first, and forgotten when nobody has used them for long.

ALTER TABLE catalog_targets
    -- Whose token was the first to name it; empty: from before this version, or none did.
    ADD COLUMN introduced_by text COLLATE "C" NOT NULL DEFAULT '',
    -- When a use of it was last written down, by the service clock; NULL: none was yet.
    ADD COLUMN used_us bigint;

CREATE INDEX catalog_targets_by_use ON catalog_targets (used_us, site, account) WHERE account <> '';
DROP INDEX catalog_targets_by_round;
CREATE INDEX catalog_targets_by_round ON catalog_targets (site, filed_us, used_us);

-- How many accounts each token has named first, kept by triggers: the limit costs the same with ten as with all of them.
CREATE TABLE target_counts (
    introduced_by text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL CHECK (count >= 0)
);

INSERT INTO target_counts (introduced_by, count) SELECT '', count(*) FROM catalog_targets WHERE account <> ''
HAVING count(*) > 0;

-- Gateways of the former version name targets too, and their role is given its rights a moment later.
DO $$
DECLARE
    served text;
BEGIN
    FOR served IN
        SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = current_schema() AND table_name = 'catalog_targets' AND privilege_type = 'INSERT'
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON target_counts TO %I', served);
    END LOOP;
END $$;

CREATE FUNCTION count_a_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE target_counts SET count = count - 1 WHERE introduced_by = old.introduced_by;
    ELSE
        INSERT INTO target_counts (introduced_by, count) VALUES (new.introduced_by, 1)
        ON CONFLICT (introduced_by) DO UPDATE SET count = target_counts.count + 1;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER catalog_targets_count_new AFTER INSERT ON catalog_targets FOR EACH ROW
WHEN (new.account <> '') EXECUTE FUNCTION count_a_target();
CREATE TRIGGER catalog_targets_count_gone AFTER DELETE ON catalog_targets FOR EACH ROW
WHEN (old.account <> '') EXECUTE FUNCTION count_a_target();

-- A lane that was forgotten comes back with whatever moves in it: no task is in a queue that nobody looks at.
CREATE OR REPLACE FUNCTION move_in_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head bigint := (
        SELECT min(oldest.row) FROM (
            (
                SELECT tasks.row FROM tasks
                WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                    AND tasks.site = new.site AND tasks.account = new.account
                    AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                        THEN 0 ELSE 1 END = 0
                ORDER BY tasks.row LIMIT 1
            )
            UNION ALL
            (
                SELECT tasks.row FROM tasks
                WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                    AND tasks.site = new.site AND tasks.account = new.account
                    AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                        THEN 0 ELSE 1 END = 1
                ORDER BY tasks.row LIMIT 1
            )
        ) AS oldest
    );
    active bigint := (
        SELECT tasks.row FROM tasks
        WHERE tasks.slot IS NOT NULL AND tasks.site = new.site AND tasks.account = new.account LIMIT 1
    );
BEGIN
    UPDATE lanes SET head_row = head, active_row = active
    WHERE lanes.site = new.site AND lanes.account = new.account;
    IF NOT FOUND THEN
        INSERT INTO lanes (site, account, head_row, active_row) VALUES (new.site, new.account, head, active);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION move_in_a_query_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE query_lanes SET queued = queued + CASE WHEN new.status = 'queued' THEN 1 ELSE -1 END
    WHERE site = new.site AND account = new.account;
    IF NOT FOUND THEN
        INSERT INTO query_lanes (site, account, queued)
        VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN 1 ELSE 0 END);
    END IF;
    RETURN NULL;
END $$;
