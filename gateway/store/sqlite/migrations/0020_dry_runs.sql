-- Orders that are taken as far as the confirmation page and no further.

ALTER TABLE tasks ADD COLUMN stop_before_submit INTEGER NOT NULL DEFAULT 0 CHECK (stop_before_submit IN (0, 1));

CREATE TRIGGER tasks_dry_run_stays BEFORE UPDATE OF stop_before_submit ON tasks
WHEN new.stop_before_submit <> old.stop_before_submit
BEGIN SELECT RAISE(ABORT, 'a dry run stays one'); END;

-- Whichever program grants it, also one that knows of no dry run.
CREATE TRIGGER leases_permit_no_dry_run BEFORE UPDATE OF permitted_at ON leases
WHEN old.permitted_at IS NULL AND new.permitted_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM tasks WHERE task_id = new.task_id AND stop_before_submit = 1)
BEGIN SELECT RAISE(ABORT, 'a dry run gets no permit'); END;
