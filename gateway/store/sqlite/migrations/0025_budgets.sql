-- Budgets: what permits may reserve within a day, a week or a month, and the ledger of what they have reserved.

-- Who filed a task: the identity of the token. Of tasks filed before nobody has written it down.
ALTER TABLE tasks ADD COLUMN submitted_by TEXT;

CREATE TRIGGER tasks_submitter_stays BEFORE UPDATE OF submitted_by ON tasks
WHEN new.submitted_by IS NOT old.submitted_by
BEGIN SELECT RAISE(ABORT, 'a task keeps who filed it'); END;

CREATE TABLE budgets (
    budget_id TEXT PRIMARY KEY CHECK (length(budget_id) BETWEEN 1 AND 64),
    -- all, site:SITE, target:SITE/ACCOUNT or identity:NAME
    scope TEXT NOT NULL,
    period TEXT NOT NULL CHECK (period IN ('day', 'week', 'month')),
    zone TEXT NOT NULL,
    limit_yen INTEGER NOT NULL CHECK (limit_yen >= 0),
    set_at TEXT NOT NULL,
    set_by TEXT NOT NULL,
    removed_at TEXT
) STRICT;
CREATE INDEX budgets_standing ON budgets (scope, budget_id) WHERE removed_at IS NULL;

-- Sums of the ledger. Only the triggers below write them.
CREATE TABLE budget_periods (
    budget_id TEXT NOT NULL REFERENCES budgets (budget_id),
    starts_at TEXT NOT NULL,
    reserved_yen INTEGER NOT NULL DEFAULT 0 CHECK (reserved_yen >= 0),
    settled_yen INTEGER NOT NULL DEFAULT 0 CHECK (settled_yen >= 0),
    PRIMARY KEY (budget_id, starts_at)
) STRICT;

CREATE TABLE budget_entries (
    entry INTEGER PRIMARY KEY AUTOINCREMENT,
    budget_id TEXT NOT NULL,
    -- Of the period in which the permit was granted, whenever its order is paid.
    starts_at TEXT NOT NULL,
    task_id TEXT NOT NULL,
    lease_number INTEGER NOT NULL,
    granted_at TEXT NOT NULL,
    reserved_yen INTEGER NOT NULL CHECK (reserved_yen >= 0),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
    counted_yen INTEGER NOT NULL CHECK (counted_yen >= 0),
    changed_at TEXT NOT NULL,
    UNIQUE (task_id, lease_number, budget_id),
    FOREIGN KEY (budget_id, starts_at) REFERENCES budget_periods (budget_id, starts_at),
    FOREIGN KEY (task_id, lease_number) REFERENCES leases (task_id, lease_number),
    CHECK (state <> 'reserved' OR counted_yen = reserved_yen),
    CHECK (state <> 'released' OR counted_yen = 0)
) STRICT;
CREATE INDEX budget_entries_of_budget ON budget_entries (budget_id, entry);

CREATE TRIGGER budgets_stay_what_they_are BEFORE UPDATE OF scope, period, zone ON budgets
WHEN new.scope <> old.scope OR new.period <> old.period OR new.zone <> old.zone
BEGIN SELECT RAISE(ABORT, 'a budget keeps its scope, period and time zone'); END;

CREATE TRIGGER budgets_are_never_deleted BEFORE DELETE ON budgets
BEGIN SELECT RAISE(ABORT, 'a budget is never deleted'); END;

CREATE TRIGGER budget_periods_are_never_deleted BEFORE DELETE ON budget_periods
BEGIN SELECT RAISE(ABORT, 'a budget is never deleted'); END;

-- Whoever reserves: never beyond what is left.
CREATE TRIGGER budget_entries_within_the_budget BEFORE INSERT ON budget_entries
WHEN new.state <> 'reserved' OR new.reserved_yen > (
    SELECT limit_yen - reserved_yen - settled_yen FROM budgets JOIN budget_periods USING (budget_id)
    WHERE budget_id = new.budget_id AND starts_at = new.starts_at
)
BEGIN SELECT RAISE(ABORT, 'a reservation is beyond its budget'); END;

CREATE TRIGGER budget_entries_are_added_up AFTER INSERT ON budget_entries
BEGIN
    UPDATE budget_periods SET reserved_yen = reserved_yen + new.counted_yen
    WHERE budget_id = new.budget_id AND starts_at = new.starts_at;
END;

CREATE TRIGGER budget_entries_keep_their_place
BEFORE UPDATE OF entry, budget_id, starts_at, task_id, lease_number, granted_at, reserved_yen ON budget_entries
BEGIN SELECT RAISE(ABORT, 'an entry of the ledger keeps its place'); END;

CREATE TRIGGER budget_entries_are_counted_anew AFTER UPDATE OF state, counted_yen ON budget_entries
BEGIN
    UPDATE budget_periods
    SET reserved_yen = reserved_yen - CASE old.state WHEN 'reserved' THEN old.counted_yen ELSE 0 END
            + CASE new.state WHEN 'reserved' THEN new.counted_yen ELSE 0 END,
        settled_yen = settled_yen - CASE old.state WHEN 'settled' THEN old.counted_yen ELSE 0 END
            + CASE new.state WHEN 'settled' THEN new.counted_yen ELSE 0 END
    WHERE budget_id = new.budget_id AND starts_at = new.starts_at;
END;

CREATE TRIGGER budget_entries_are_never_deleted BEFORE DELETE ON budget_entries
BEGIN SELECT RAISE(ABORT, 'an entry of the ledger is never deleted'); END;

-- Whichever program grants it, also one that knows of no budget: no permit without its reservation.
CREATE TRIGGER leases_permit_in_the_ledger BEFORE UPDATE OF permitted_at ON leases
WHEN old.permitted_at IS NULL AND new.permitted_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM tasks JOIN budgets ON budgets.removed_at IS NULL AND budgets.scope IN ('all', 'site:' || tasks.site,
        'target:' || tasks.site || '/' || tasks.account, 'identity:' || tasks.submitted_by)
    WHERE tasks.task_id = new.task_id AND NOT EXISTS (
        SELECT 1 FROM budget_entries
        WHERE budget_entries.budget_id = budgets.budget_id AND budget_entries.task_id = new.task_id
            AND budget_entries.lease_number = new.lease_number AND budget_entries.state = 'reserved'
            AND budget_entries.reserved_yen = new.permit_payable_yen
    )
)
BEGIN SELECT RAISE(ABORT, 'a permit is not in the ledger of its budget'); END;
