-- What is known of an order: its numbers from one table alone, and a person's word kept apart from the workers'.

-- When a person last stated how the order ended. What a person stated, a person can revise.
ALTER TABLE tasks ADD COLUMN resolved_at TEXT CHECK (resolved_at IS NULL OR status IN ('succeeded', 'failed'));
-- The person's statement says that an order exists; order_known is what workers told.
ALTER TABLE tasks ADD COLUMN order_stated INTEGER NOT NULL DEFAULT 0
    CHECK (order_stated = 0 OR order_stated = 1 AND resolved_at IS NOT NULL);
-- order_numbers has a number of this task.
ALTER TABLE tasks ADD COLUMN number_known INTEGER NOT NULL DEFAULT 0 CHECK (number_known IN (0, 1));
-- Told by nobody but a person, who can take it back.
ALTER TABLE order_numbers ADD COLUMN stated INTEGER NOT NULL DEFAULT 0 CHECK (stated IN (0, 1));
ALTER TABLE reports ADD COLUMN stated INTEGER NOT NULL DEFAULT 0 CHECK (stated IN (0, 1));

UPDATE tasks
SET resolved_at = (SELECT max(occurred_at) FROM events WHERE events.subject = tasks.task_id AND events.kind = 'resolve')
WHERE status IN ('succeeded', 'failed');
UPDATE tasks SET number_known = 1 WHERE task_id IN (SELECT task_id FROM order_numbers);
UPDATE reports SET stated = 1
WHERE detail LIKE 'stated by a person: %' AND task_id IN (SELECT task_id FROM tasks WHERE resolved_at IS NOT NULL);

-- Nobody asks reports for order numbers any more.
DROP INDEX reports_with_number;
DROP INDEX reports_by_site_order_id;
DROP INDEX reports_telling_numbers;
CREATE INDEX order_numbers_by_time ON order_numbers (site, told_at);

-- Tasks that have or may have an order on the site whose number nobody has told.
DROP INDEX tasks_possibly_ordered;
CREATE INDEX tasks_ordered_without_number ON tasks (site, updated_at)
WHERE number_known = 0 AND (may_have_clicked = 1 OR order_known = 1 OR order_stated = 1);
