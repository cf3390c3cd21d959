-- The most that an order may cost, and what a worker showed that it would pay before its click.

ALTER TABLE tasks ADD COLUMN max_total_yen INTEGER CHECK (max_total_yen >= 1);
ALTER TABLE tasks ADD COLUMN terms_json TEXT;
-- What a permit was granted for.
ALTER TABLE leases ADD COLUMN permit_payable_yen INTEGER CHECK (permit_payable_yen >= 0)
    CHECK (permit_payable_yen IS NULL OR permitted_at IS NOT NULL);
ALTER TABLE leases ADD COLUMN permit_terms_json TEXT CHECK ((permit_terms_json IS NULL) = (permit_payable_yen IS NULL));

CREATE TRIGGER tasks_cap_stays BEFORE UPDATE OF max_total_yen ON tasks
WHEN new.max_total_yen IS NOT old.max_total_yen
BEGIN SELECT RAISE(ABORT, 'a task keeps the cap that it was filed with'); END;

CREATE TRIGGER leases_permit_terms_once BEFORE UPDATE OF permit_payable_yen, permit_terms_json ON leases
WHEN old.permitted_at IS NOT NULL
    AND (new.permit_payable_yen IS NOT old.permit_payable_yen OR new.permit_terms_json IS NOT old.permit_terms_json)
BEGIN SELECT RAISE(ABORT, 'a permit is given once and never changed'); END;

-- Whichever program grants it, also one that knows of no cap: no permit beyond the task's.
CREATE TRIGGER leases_permit_under_the_cap BEFORE UPDATE OF permitted_at ON leases
WHEN old.permitted_at IS NULL AND new.permitted_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM tasks WHERE task_id = new.task_id AND max_total_yen IS NOT NULL
        AND (new.permit_payable_yen IS NULL OR new.permit_payable_yen > max_total_yen)
)
BEGIN SELECT RAISE(ABORT, 'a permit is beyond the cap of its task'); END;
