-- When an order may be handed out, and until when it may be permitted. Both are compared with the gateway's UTC text.

ALTER TABLE tasks ADD COLUMN not_before TEXT;
ALTER TABLE tasks ADD COLUMN not_after TEXT CHECK (not_after >= not_before);
-- Until when a queued task is kept back: its not_before, until that has come. So the queue itself holds what may be taken.
ALTER TABLE tasks ADD COLUMN held_until TEXT;

CREATE TRIGGER tasks_times_stay BEFORE UPDATE OF not_before, not_after ON tasks
WHEN new.not_before IS NOT old.not_before OR new.not_after IS NOT old.not_after
BEGIN SELECT RAISE(ABORT, 'a task keeps the times that it was filed with'); END;

-- Whichever program leases it, also one that knows of no time.
CREATE TRIGGER tasks_held_are_not_leased BEFORE UPDATE OF status ON tasks
WHEN old.status = 'queued' AND new.status = 'leased' AND old.held_until IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a task is not handed out before its time'); END;

DROP INDEX tasks_queued_of_target;
-- The status stands first, although it is the same in all of them: else the planner may prefer an index of all tasks.
CREATE INDEX tasks_ready_of_target ON tasks (status, site, account, row) WHERE status = 'queued' AND held_until IS NULL;
CREATE INDEX tasks_ready ON tasks (status, row) WHERE status = 'queued' AND held_until IS NULL;
CREATE INDEX tasks_held ON tasks (status, held_until, row) WHERE status = 'queued' AND held_until IS NOT NULL;
-- Those that end when their time has passed: whatever may have been ordered waits for a look at the site instead.
CREATE INDEX tasks_to_end_in_time ON tasks (status, not_after, row)
WHERE status = 'queued' AND not_after IS NOT NULL AND may_have_clicked = 0 AND order_known = 0 AND order_stated = 0;

DROP TRIGGER tasks_join_a_lane;
CREATE TRIGGER tasks_join_a_lane AFTER INSERT ON tasks
BEGIN
    INSERT INTO lanes (site, account, head_row, active_row)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' AND new.held_until IS NULL THEN new.row END,
        CASE WHEN new.slot IS NOT NULL THEN new.row END)
    ON CONFLICT (site, account) DO UPDATE
    SET head_row = coalesce(head_row, excluded.head_row), active_row = coalesce(active_row, excluded.active_row)
    -- Behind others in the queue there is nothing to write.
    WHERE (head_row IS NULL AND excluded.head_row IS NOT NULL) OR (active_row IS NULL AND excluded.active_row IS NOT NULL);
END;

DROP TRIGGER tasks_move_in_their_lane;
CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status, held_until ON tasks
WHEN (new.status = 'queued' AND new.held_until IS NULL) <> (old.status = 'queued' AND old.held_until IS NULL)
    OR (new.slot IS NULL) <> (old.slot IS NULL)
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT row FROM tasks INDEXED BY tasks_ready_of_target
            WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
            ORDER BY row LIMIT 1
        ),
        active_row = (
            SELECT row FROM tasks INDEXED BY tasks_active_of_target
            WHERE slot IS NOT NULL AND site = new.site AND account = new.account LIMIT 1
        )
    WHERE site = new.site AND account = new.account;
END;
