-- Orders that a second person has to agree to: why one needs it, and what was decided about it.

ALTER TABLE tasks
    -- Why it needs an approval, words with commas between them; NULL: it needs none.
    ADD COLUMN approval_reasons text COLLATE "C" CHECK (approval_reasons <> ''),
    ADD CHECK (approval_reasons IS NULL OR submitted_by IS NOT NULL);

CREATE TABLE approvals (
    task_id text COLLATE "C" NOT NULL REFERENCES tasks (task_id),
    approval_number bigint NOT NULL CHECK (approval_number >= 1),
    verdict text COLLATE "C" NOT NULL CHECK (verdict IN ('approved', 'denied')),
    decided_by text COLLATE "C" NOT NULL,
    decided_at text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    -- Of the intent as it is stored, which never changes.
    intent_hash text COLLATE "C" NOT NULL,
    max_total_yen bigint CHECK (max_total_yen >= 1),
    valid_until text COLLATE "C" CHECK (valid_until > decided_at),
    -- The lease whose permit used it.
    used_by_lease bigint,
    -- It stands until then: until it is used, has run out, or another decision takes its place.
    ended_at text COLLATE "C",
    PRIMARY KEY (task_id, approval_number),
    FOREIGN KEY (task_id, used_by_lease) REFERENCES leases (task_id, lease_number),
    CHECK ((verdict = 'approved') = (max_total_yen IS NOT NULL)),
    CHECK ((verdict = 'approved') = (valid_until IS NOT NULL)),
    CHECK (verdict = 'approved' OR (ended_at IS NOT NULL AND used_by_lease IS NULL)),
    CHECK (used_by_lease IS NULL OR ended_at IS NOT NULL)
);
CREATE UNIQUE INDEX approvals_one_standing ON approvals (task_id) WHERE ended_at IS NULL;
CREATE INDEX approvals_running_out ON approvals (valid_until, task_id) WHERE ended_at IS NULL;

CREATE TRIGGER tasks_approval_stays BEFORE UPDATE OF approval_reasons ON tasks
FOR EACH ROW WHEN (new.approval_reasons IS DISTINCT FROM old.approval_reasons)
EXECUTE FUNCTION refuse('a task keeps why it needs an approval');

-- Whichever program queues it, also one that knows of no approval.
CREATE FUNCTION refuse_to_release_the_unapproved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM approvals WHERE approvals.task_id = new.task_id AND approvals.ended_at IS NULL
    ) THEN
        RAISE EXCEPTION 'a task is held until it is approved' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER tasks_unapproved_begin_held BEFORE INSERT ON tasks
FOR EACH ROW WHEN (
    new.approval_reasons IS NOT NULL AND new.status = 'queued'
    AND new.held_until IS DISTINCT FROM '9999-12-31T23:59:59.999999Z'
) EXECUTE FUNCTION refuse_to_release_the_unapproved();

CREATE TRIGGER tasks_unapproved_are_held BEFORE UPDATE OF status, held_until ON tasks
FOR EACH ROW WHEN (
    new.approval_reasons IS NOT NULL AND new.status = 'queued'
    AND new.held_until IS DISTINCT FROM '9999-12-31T23:59:59.999999Z'
) EXECUTE FUNCTION refuse_to_release_the_unapproved();

CREATE FUNCTION refuse_an_own_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.submitted_by = new.decided_by
    ) THEN
        RAISE EXCEPTION 'nobody approves an order that they filed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER approvals_by_somebody_else BEFORE INSERT ON approvals
FOR EACH ROW WHEN (new.verdict = 'approved') EXECUTE FUNCTION refuse_an_own_approval();

CREATE FUNCTION refuse_to_raise_a_cap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.max_total_yen < new.max_total_yen
    ) THEN
        RAISE EXCEPTION 'an approval raises no cap' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER approvals_raise_no_cap BEFORE INSERT ON approvals
FOR EACH ROW WHEN (new.max_total_yen IS NOT NULL) EXECUTE FUNCTION refuse_to_raise_a_cap();

CREATE TRIGGER approvals_end_once BEFORE UPDATE ON approvals
FOR EACH ROW WHEN (old.ended_at IS NOT NULL) EXECUTE FUNCTION refuse('an approval is used once, and ends once');

CREATE TRIGGER approvals_stay BEFORE UPDATE OF task_id, approval_number, verdict, decided_by, decided_at, reason,
    intent_hash, max_total_yen, valid_until ON approvals
FOR EACH ROW EXECUTE FUNCTION refuse('an approval never changes');

CREATE TRIGGER approvals_are_never_deleted BEFORE DELETE ON approvals
FOR EACH ROW EXECUTE FUNCTION refuse('an approval is never deleted');

CREATE TRIGGER approvals_are_never_truncated BEFORE TRUNCATE ON approvals
EXECUTE FUNCTION refuse('an approval is never deleted');

-- Whichever program grants it, also one that knows of no approval.
CREATE FUNCTION refuse_the_unapproved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM tasks WHERE tasks.task_id = new.task_id AND tasks.approval_reasons IS NOT NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM approvals
        WHERE approvals.task_id = new.task_id AND approvals.used_by_lease = new.lease_number
            AND new.permit_payable_yen <= approvals.max_total_yen AND new.permitted_at <= approvals.valid_until
    ) THEN
        RAISE EXCEPTION 'a permit lacks its approval' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER leases_permit_approved BEFORE UPDATE OF permitted_at ON leases
FOR EACH ROW WHEN (old.permitted_at IS NULL AND new.permitted_at IS NOT NULL)
EXECUTE FUNCTION refuse_the_unapproved();

-- A callback tells that an order waits for its approval.
ALTER TABLE callbacks
    DROP CONSTRAINT callbacks_type_check,
    ADD CONSTRAINT callbacks_type_check CHECK (type IN (
        'order.succeeded', 'order.failed', 'order.needs_human', 'order.stale', 'order.approval_required', 'order.test'
    ));

-- Of a target, first those without a condition that the permit judges: now also without the need of an approval.
DROP INDEX tasks_ready_of_target;
CREATE INDEX tasks_ready_of_target ON tasks (
    status, site, account,
    (CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0 AND approval_reasons IS NULL
        THEN 0 ELSE 1 END),
    row
) WHERE status = 'queued' AND held_until IS NULL;

CREATE OR REPLACE FUNCTION move_in_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head bigint := (
        SELECT min(oldest.row) FROM (
            (
                SELECT tasks.row FROM tasks
                WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                    AND tasks.site = new.site AND tasks.account = new.account
                    AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                        AND approval_reasons IS NULL THEN 0 ELSE 1 END = 0
                ORDER BY tasks.row LIMIT 1
            )
            UNION ALL
            (
                SELECT tasks.row FROM tasks
                WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                    AND tasks.site = new.site AND tasks.account = new.account
                    AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                        AND approval_reasons IS NULL THEN 0 ELSE 1 END = 1
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
