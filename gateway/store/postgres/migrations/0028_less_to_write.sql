-- A random id costs each commit a page of its own in every index that holds it. What happened to tasks of one time lies
-- together by their rows; the index by subject keeps what concerns no task, and what was written down before.
ALTER TABLE events ADD COLUMN task_row bigint;
CREATE INDEX events_of_task ON events (task_row, sequence) WHERE task_row IS NOT NULL;
DROP INDEX events_by_subject;
CREATE INDEX events_by_subject ON events (subject, sequence) WHERE task_row IS NULL;

-- Rows are numbered in the order of their times: the first one of a time is found by halving.
DROP INDEX tasks_by_creation;
