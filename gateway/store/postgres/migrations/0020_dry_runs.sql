-- Orders that are taken as far as the confirmation page and no further.

ALTER TABLE tasks ADD COLUMN stop_before_submit bigint NOT NULL DEFAULT 0 CHECK (stop_before_submit IN (0, 1));

CREATE TRIGGER tasks_dry_run_stays BEFORE UPDATE OF stop_before_submit ON tasks
FOR EACH ROW WHEN (new.stop_before_submit <> old.stop_before_submit)
EXECUTE FUNCTION refuse('a dry run stays one');

-- Whichever program grants it, also one that knows of no dry run.
CREATE FUNCTION refuse_a_dry_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.stop_before_submit = 1) THEN
        RAISE EXCEPTION 'a dry run gets no permit' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER leases_permit_no_dry_run BEFORE UPDATE OF permitted_at ON leases
FOR EACH ROW WHEN (old.permitted_at IS NULL AND new.permitted_at IS NOT NULL)
EXECUTE FUNCTION refuse_a_dry_run();
