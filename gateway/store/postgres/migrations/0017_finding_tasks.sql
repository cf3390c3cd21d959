-- Finding tasks: an index behind each condition.
CREATE INDEX tasks_by_creation ON tasks (created_at, row);
CREATE INDEX tasks_by_update ON tasks (updated_at, row);
CREATE INDEX order_numbers_by_number ON order_numbers (site_order_id, task_id);
