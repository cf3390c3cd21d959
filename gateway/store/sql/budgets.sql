-- name: budget_set
-- What a budget is stays as it was set first; a removed one stands again, with what its ledger holds.
INSERT INTO budgets (budget_id, scope, period, zone, limit_yen, set_at, set_by)
VALUES (:budget_id, :scope, :period, :zone, :limit_yen, :at, :by)
ON CONFLICT (budget_id) DO UPDATE SET limit_yen = excluded.limit_yen, set_at = excluded.set_at,
    set_by = excluded.set_by, removed_at = NULL;

-- name: budget_remove
UPDATE budgets SET removed_at = :at WHERE budget_id = :budget_id AND removed_at IS NULL;

-- name: budget_get
SELECT * FROM budgets WHERE budget_id = :budget_id;

-- name: budgets_standing
-- Each with the newest of its periods, which is that of now, or a former one where nothing was reserved since.
SELECT budgets.*, budget_periods.starts_at, budget_periods.reserved_yen, budget_periods.settled_yen
FROM budgets LEFT JOIN budget_periods ON budget_periods.budget_id = budgets.budget_id AND budget_periods.starts_at = (
    SELECT max(newest.starts_at) FROM budget_periods AS newest WHERE newest.budget_id = budgets.budget_id
)
WHERE budgets.removed_at IS NULL ORDER BY budgets.budget_id;

-- name: budgets_standing_count
SELECT count(*) AS count FROM budgets WHERE removed_at IS NULL;

-- name: budgets_of_task
SELECT * FROM budgets
WHERE removed_at IS NULL AND scope IN ('all', :of_site, :of_target, :of_identity) ORDER BY budget_id;

-- name: budget_period_get
SELECT reserved_yen, settled_yen FROM budget_periods WHERE budget_id = :budget_id AND starts_at = :starts_at;

-- name: budget_period_open
INSERT INTO budget_periods (budget_id, starts_at) VALUES (:budget_id, :starts_at)
ON CONFLICT (budget_id, starts_at) DO NOTHING;

-- name: budget_entry_insert
INSERT INTO budget_entries (budget_id, starts_at, task_id, lease_number, granted_at, reserved_yen, state, counted_yen,
    changed_at)
VALUES (:budget_id, :starts_at, :task_id, :lease_number, :at, :yen, 'reserved', :yen, :at);

-- name: budget_entry_count_anew
UPDATE budget_entries SET state = :state, counted_yen = :yen, changed_at = :at
WHERE entry = :entry AND (state <> :state OR counted_yen <> :yen);

-- name: budget_entries_of_task
SELECT * FROM budget_entries WHERE task_id = :task_id ORDER BY lease_number, budget_id;

-- name: budget_entries_newest
SELECT * FROM budget_entries WHERE budget_id = :budget_id AND entry < :below ORDER BY entry DESC LIMIT :count;
