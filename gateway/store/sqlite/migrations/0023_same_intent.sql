-- The same wish twice: what stands for site, account and intent, and which other task wanted the same when this was filed.

ALTER TABLE tasks ADD COLUMN intent_key TEXT;
ALTER TABLE tasks ADD COLUMN same_intent_as TEXT;
CREATE INDEX tasks_by_intent ON tasks (intent_key, row) WHERE intent_key IS NOT NULL AND status <> 'failed';
