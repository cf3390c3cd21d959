-- For a list of more than two values SQLite fills a table of its own whenever a row is checked, which costs a submission
-- more than any index. The same values, compared one by one, cost next to nothing; NULL passes a CHECK, so it comes first
-- where it is what most rows have. No row has to be looked at: the values that are allowed stay the same.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql,
    'CHECK (status IN (''queued'', ''leased'', ''running'', ''succeeded'', ''failed'', ''needs_human'', ''stale''))',
    'CHECK (status = ''queued'' OR status = ''leased'' OR status = ''running'' OR status = ''succeeded''
        OR status = ''failed'' OR status = ''needs_human'' OR status = ''stale'')'),
    'latest_state TEXT CHECK (latest_state IN
        (''created'', ''in_cart'', ''ordered'', ''awaiting_payment'', ''paid'', ''shipped'', ''delivered'', ''cancelled''))',
    'latest_state TEXT CHECK (latest_state IS NULL OR latest_state = ''created'' OR latest_state = ''in_cart''
        OR latest_state = ''ordered'' OR latest_state = ''awaiting_payment'' OR latest_state = ''paid''
        OR latest_state = ''shipped'' OR latest_state = ''delivered'' OR latest_state = ''cancelled'')'),
    'CHECK (end_status IN (''succeeded'', ''failed'', ''needs_human''))',
    'CHECK (end_status IS NULL OR end_status = ''succeeded'' OR end_status = ''failed'' OR end_status = ''needs_human'')'),
    'slot IN (''global'', ''site:'' || site, ''account:'' || site || '':'' || account,
        ''site:'' || site || '':'' || task_id)',
    'slot = ''site:'' || site OR slot = ''global'' OR slot = ''account:'' || site || '':'' || account
        OR slot = ''site:'' || site || '':'' || task_id')
WHERE type = 'table' AND name = 'tasks';

UPDATE sqlite_schema SET sql = replace(sql,
    'state TEXT NOT NULL CHECK (state IN
        (''created'', ''in_cart'', ''ordered'', ''awaiting_payment'', ''paid'', ''shipped'', ''delivered'', ''cancelled''))',
    'state TEXT NOT NULL CHECK (state = ''created'' OR state = ''in_cart'' OR state = ''ordered''
        OR state = ''awaiting_payment'' OR state = ''paid'' OR state = ''shipped'' OR state = ''delivered''
        OR state = ''cancelled'')')
WHERE type = 'table' AND name IN ('reports', 'late_reports');

UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (verification_verdict IN (''not_ordered'', ''ordered'', ''unknown''))',
    'CHECK (verification_verdict IS NULL OR verification_verdict = ''not_ordered'' OR verification_verdict = ''ordered''
        OR verification_verdict = ''unknown'')')
WHERE type = 'table' AND name = 'leases';

UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CHECK (type IN (''order.succeeded'', ''order.failed'', ''order.needs_human'', ''order.stale'', ''order.approval_required'', ''order.test''))',
    'CHECK (type = ''order.succeeded'' OR type = ''order.failed'' OR type = ''order.needs_human''
        OR type = ''order.stale'' OR type = ''order.approval_required'' OR type = ''order.test'')'),
    'CHECK (status IN (''pending'', ''delivered'', ''given_up''))',
    'CHECK (status = ''pending'' OR status = ''delivered'' OR status = ''given_up'')')
WHERE type = 'table' AND name = 'callbacks';

UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (state IN (''reserved'', ''settled'', ''released''))',
    'CHECK (state = ''reserved'' OR state = ''settled'' OR state = ''released'')')
WHERE type = 'table' AND name = 'budget_entries';

UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CHECK (status IN (''queued'', ''leased'', ''succeeded'', ''failed'', ''expired''))',
    'CHECK (status = ''queued'' OR status = ''leased'' OR status = ''succeeded'' OR status = ''failed''
        OR status = ''expired'')'),
    'CHECK ((status IN (''succeeded'', ''failed'', ''expired'')) = (completed_at IS NOT NULL))',
    'CHECK ((status = ''succeeded'' OR status = ''failed'' OR status = ''expired'') = (completed_at IS NOT NULL))')
WHERE type = 'table' AND name = 'account_queries';

PRAGMA writable_schema = RESET;

-- A random id costs each commit a page of its own in every index that holds it. What happened to tasks of one time lies
-- together by their rows; the index by subject keeps what concerns no task, and what was written down before.
ALTER TABLE events ADD COLUMN task_row INTEGER;
CREATE INDEX events_of_task ON events (task_row, sequence) WHERE task_row IS NOT NULL;
DROP INDEX events_by_subject;
CREATE INDEX events_by_subject ON events (subject, sequence) WHERE task_row IS NULL;

-- Rows are numbered in the order of their times: the first one of a time is found by halving.
DROP INDEX tasks_by_creation;
