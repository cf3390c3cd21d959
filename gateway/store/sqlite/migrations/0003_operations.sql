-- Operations: how long a task has waited, by the service clock; payloads dropped after their retention; alerts on
-- their way out.

-- When the task last came into the queue. Tasks queued before this version have none.
ALTER TABLE tasks ADD COLUMN queued_us INTEGER;

-- In place of a dropped intent: SHA-256 of its canonical form, so that a resubmission is still compared.
ALTER TABLE tasks ADD COLUMN intent_digest TEXT CHECK (intent_digest IS NULL OR intent_json = '{}');

-- What still has to be told of alerts, to the log and to the webhook; a row goes when everybody has been told.
CREATE TABLE alert_deliveries (
    delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,
    alert_id INTEGER NOT NULL REFERENCES alerts (alert_id),
    edge TEXT NOT NULL CHECK (edge IN ('raised', 'cleared')),
    logged INTEGER NOT NULL DEFAULT 0 CHECK (logged IN (0, 1)),
    attempts INTEGER NOT NULL DEFAULT 0,
    created_us INTEGER NOT NULL,
    due_us INTEGER NOT NULL,
    UNIQUE (alert_id, edge)
) STRICT;
