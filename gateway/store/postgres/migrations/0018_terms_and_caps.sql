-- The most that an order may cost, and what a worker showed that it would pay before its click.

ALTER TABLE tasks
    ADD COLUMN max_total_yen bigint CHECK (max_total_yen >= 1),
    ADD COLUMN terms_json text COLLATE "C";
-- What a permit was granted for.
ALTER TABLE leases
    ADD COLUMN permit_payable_yen bigint CHECK (permit_payable_yen >= 0),
    ADD COLUMN permit_terms_json text COLLATE "C",
    ADD CHECK (permit_payable_yen IS NULL OR permitted_at IS NOT NULL),
    ADD CHECK ((permit_terms_json IS NULL) = (permit_payable_yen IS NULL));

CREATE TRIGGER tasks_cap_stays BEFORE UPDATE OF max_total_yen ON tasks
FOR EACH ROW WHEN (new.max_total_yen IS DISTINCT FROM old.max_total_yen)
EXECUTE FUNCTION refuse('a task keeps the cap that it was filed with');

CREATE TRIGGER leases_permit_terms_once BEFORE UPDATE OF permit_payable_yen, permit_terms_json ON leases
FOR EACH ROW WHEN (
    old.permitted_at IS NOT NULL AND (
        new.permit_payable_yen IS DISTINCT FROM old.permit_payable_yen
        OR new.permit_terms_json IS DISTINCT FROM old.permit_terms_json
    )
) EXECUTE FUNCTION refuse('a permit is given once and never changed');

-- Whichever program grants it, also one that knows of no cap: no permit beyond the task's.
CREATE FUNCTION refuse_beyond_the_cap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.max_total_yen IS NOT NULL
            AND (new.permit_payable_yen IS NULL OR new.permit_payable_yen > tasks.max_total_yen)
    ) THEN
        RAISE EXCEPTION 'a permit is beyond the cap of its task' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER leases_permit_under_the_cap BEFORE UPDATE OF permitted_at ON leases
FOR EACH ROW WHEN (old.permitted_at IS NULL AND new.permitted_at IS NOT NULL)
EXECUTE FUNCTION refuse_beyond_the_cap();
