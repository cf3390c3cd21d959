-- A cancel of a task that a worker has in hand: requested once, and then no permit is granted any more.

ALTER TABLE tasks ADD COLUMN cancel_requested_at TEXT;

CREATE TRIGGER tasks_cancel_is_requested_once BEFORE UPDATE OF cancel_requested_at ON tasks
WHEN old.cancel_requested_at IS NOT NULL AND new.cancel_requested_at IS NOT old.cancel_requested_at
BEGIN SELECT RAISE(ABORT, 'a cancel stays requested'); END;

-- Of a permit and a cancel request the one that comes first wins, whichever program writes it.
CREATE TRIGGER tasks_cancel_before_the_permit BEFORE UPDATE OF cancel_requested_at ON tasks
WHEN new.cancel_requested_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM leases WHERE task_id = new.task_id AND lease_number = new.lease_count AND permitted_at IS NOT NULL
)
BEGIN SELECT RAISE(ABORT, 'a cancel is requested before the permit, or not at all'); END;

CREATE TRIGGER leases_permit_no_cancelled BEFORE UPDATE OF permitted_at ON leases
WHEN old.permitted_at IS NULL AND new.permitted_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM tasks WHERE task_id = new.task_id AND cancel_requested_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a task whose cancel was requested gets no permit'); END;
