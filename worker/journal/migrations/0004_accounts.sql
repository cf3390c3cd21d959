-- The account of the site that a task is ordered with; empty: the site's only account, as for all tasks before.
ALTER TABLE orders ADD COLUMN account TEXT NOT NULL DEFAULT '';
