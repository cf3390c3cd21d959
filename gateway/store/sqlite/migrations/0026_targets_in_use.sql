-- Targets are bounded by who named them first, and forgotten when nobody has used them for long.

-- Whose token was the first to name it; empty: from before this version, or none did.
ALTER TABLE catalog_targets ADD COLUMN introduced_by TEXT NOT NULL DEFAULT '';
-- When a use of it was last written down, by the service clock; NULL: none was yet.
ALTER TABLE catalog_targets ADD COLUMN used_us INTEGER;

CREATE INDEX catalog_targets_by_use ON catalog_targets (used_us, site, account) WHERE account <> '';
DROP INDEX catalog_targets_by_round;
CREATE INDEX catalog_targets_by_round ON catalog_targets (site, filed_us, used_us);

-- How many accounts each token has named first, kept by triggers: the limit costs the same with ten as with all of them.
CREATE TABLE target_counts (
    introduced_by TEXT PRIMARY KEY,
    count INTEGER NOT NULL CHECK (count >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO target_counts (introduced_by, count) SELECT '', count(*) FROM catalog_targets WHERE account <> ''
HAVING count(*) > 0;

CREATE TRIGGER catalog_targets_count_new AFTER INSERT ON catalog_targets WHEN new.account <> ''
BEGIN
    INSERT INTO target_counts (introduced_by, count) VALUES (new.introduced_by, 1)
    ON CONFLICT (introduced_by) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER catalog_targets_count_gone AFTER DELETE ON catalog_targets WHEN old.account <> ''
BEGIN
    UPDATE target_counts SET count = count - 1 WHERE introduced_by = old.introduced_by;
END;

-- A lane that was forgotten comes back with whatever moves in it: no task is in a queue that nobody looks at.
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
                            THEN 0 ELSE 1 END = 0
                    ORDER BY row LIMIT 1
                )
                UNION ALL
                SELECT * FROM (
                    SELECT row FROM tasks INDEXED BY tasks_ready_of_target
                    WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            THEN 0 ELSE 1 END = 1
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

DROP TRIGGER account_queries_move_in_their_lane;
CREATE TRIGGER account_queries_move_in_their_lane AFTER UPDATE OF status ON account_queries
WHEN (new.status = 'queued') <> (old.status = 'queued')
BEGIN
    INSERT INTO query_lanes (site, account, queued)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' THEN 1 ELSE 0 END)
    ON CONFLICT (site, account) DO UPDATE SET queued = queued + CASE WHEN new.status = 'queued' THEN 1 ELSE -1 END;
END;
