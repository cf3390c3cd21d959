-- A cancel of a task that a worker has in hand: requested once, and then no permit is granted any more.

ALTER TABLE tasks ADD COLUMN cancel_requested_at text COLLATE "C";

CREATE TRIGGER tasks_cancel_is_requested_once BEFORE UPDATE OF cancel_requested_at ON tasks
FOR EACH ROW WHEN (
    old.cancel_requested_at IS NOT NULL AND new.cancel_requested_at IS DISTINCT FROM old.cancel_requested_at
) EXECUTE FUNCTION refuse('a cancel stays requested');

-- Of a permit and a cancel request the one that comes first wins, whichever program writes it.
CREATE FUNCTION refuse_a_late_cancel() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM leases WHERE leases.task_id = new.task_id AND leases.lease_number = new.lease_count
            AND leases.permitted_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'a cancel is requested before the permit, or not at all'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER tasks_cancel_before_the_permit BEFORE UPDATE OF cancel_requested_at ON tasks
FOR EACH ROW WHEN (new.cancel_requested_at IS NOT NULL) EXECUTE FUNCTION refuse_a_late_cancel();

CREATE FUNCTION refuse_a_cancelled_one() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.cancel_requested_at IS NOT NULL) THEN
        RAISE EXCEPTION 'a task whose cancel was requested gets no permit'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER leases_permit_no_cancelled BEFORE UPDATE OF permitted_at ON leases
FOR EACH ROW WHEN (old.permitted_at IS NULL AND new.permitted_at IS NOT NULL)
EXECUTE FUNCTION refuse_a_cancelled_one();
