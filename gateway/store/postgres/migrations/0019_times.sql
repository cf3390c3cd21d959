-- When an order may be handed out, and until when it may be permitted. Both are compared with the gateways' UTC text.

ALTER TABLE tasks
    ADD COLUMN not_before text COLLATE "C",
    ADD COLUMN not_after text COLLATE "C",
    -- Until when a queued task is kept back: its not_before, until that has come. So the queue itself holds what may be taken.
    ADD COLUMN held_until text COLLATE "C",
    ADD CHECK (not_after >= not_before);

CREATE TRIGGER tasks_times_stay BEFORE UPDATE OF not_before, not_after ON tasks
FOR EACH ROW WHEN (new.not_before IS DISTINCT FROM old.not_before OR new.not_after IS DISTINCT FROM old.not_after)
EXECUTE FUNCTION refuse('a task keeps the times that it was filed with');

-- Whichever program leases it, also one that knows of no time.
CREATE TRIGGER tasks_held_are_not_leased BEFORE UPDATE OF status ON tasks
FOR EACH ROW WHEN (old.status = 'queued' AND new.status = 'leased' AND old.held_until IS NOT NULL)
EXECUTE FUNCTION refuse('a task is not handed out before its time');

-- Beside tasks_queued_of_target, which former programs use.
CREATE INDEX tasks_ready_of_target ON tasks (status, site, account, row) WHERE status = 'queued' AND held_until IS NULL;
CREATE INDEX tasks_ready ON tasks (status, row) WHERE status = 'queued' AND held_until IS NULL;
CREATE INDEX tasks_held ON tasks (status, held_until, row) WHERE status = 'queued' AND held_until IS NOT NULL;
-- Those that end when their time has passed: whatever may have been ordered waits for a look at the site instead.
CREATE INDEX tasks_to_end_in_time ON tasks (status, not_after, row)
WHERE status = 'queued' AND not_after IS NOT NULL AND may_have_clicked = 0 AND order_known = 0 AND order_stated = 0;

CREATE OR REPLACE FUNCTION join_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lanes (site, account, head_row, active_row)
    VALUES (new.site, new.account, CASE WHEN new.status = 'queued' AND new.held_until IS NULL THEN new.row END,
        CASE WHEN new.slot IS NOT NULL THEN new.row END)
    ON CONFLICT (site, account) DO UPDATE
    SET head_row = coalesce(lanes.head_row, excluded.head_row),
        active_row = coalesce(lanes.active_row, excluded.active_row)
    -- Behind others in the queue there is nothing to write.
    WHERE (lanes.head_row IS NULL AND excluded.head_row IS NOT NULL)
        OR (lanes.active_row IS NULL AND excluded.active_row IS NOT NULL);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION move_in_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT tasks.row FROM tasks
            WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                AND tasks.site = new.site AND tasks.account = new.account
            ORDER BY tasks.row LIMIT 1
        ),
        active_row = (
            SELECT tasks.row FROM tasks
            WHERE tasks.slot IS NOT NULL AND tasks.site = new.site AND tasks.account = new.account LIMIT 1
        )
    WHERE lanes.site = new.site AND lanes.account = new.account;
    RETURN NULL;
END $$;

DROP TRIGGER tasks_move_in_their_lane ON tasks;
CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status, held_until ON tasks FOR EACH ROW
WHEN ((new.status = 'queued' AND new.held_until IS NULL) <> (old.status = 'queued' AND old.held_until IS NULL)
    OR (new.slot IS NULL) <> (old.slot IS NULL))
EXECUTE FUNCTION move_in_a_lane();
