-- Callbacks on their way out (docs/specification.md#callbacks): written with the change that they tell of.

CREATE TABLE callbacks (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    callback_id TEXT NOT NULL UNIQUE,
    -- NULL for a test.
    task_id TEXT REFERENCES tasks (task_id),
    url TEXT NOT NULL,
    -- Scheme, host and port of the URL: what hangs or is down as a whole.
    endpoint TEXT NOT NULL,
    type TEXT NOT NULL
        CHECK (type IN ('order.succeeded', 'order.failed', 'order.needs_human', 'order.stale', 'order.test')),
    -- The task detail as it was then. Its intent never changes and stands with the task alone.
    data_json TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'given_up')),
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    -- When the delivery was begun, the last time: delays grow and end by it.
    since_us INTEGER NOT NULL,
    due_us INTEGER,
    next_attempt_at TEXT,
    last_result TEXT NOT NULL DEFAULT '',
    CHECK ((type = 'order.test') = (task_id IS NULL)),
    CHECK ((status = 'pending') = (due_us IS NOT NULL)),
    CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL))
) STRICT;

CREATE INDEX callbacks_pending ON callbacks (endpoint, due_us) WHERE status = 'pending';
CREATE INDEX callbacks_by_status ON callbacks (status, row);
CREATE INDEX callbacks_by_task ON callbacks (task_id, row);
