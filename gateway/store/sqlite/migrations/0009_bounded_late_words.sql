-- Whether words are new is asked of an index, and how many a token has brought is counted: somebody without a lease may
-- say any number of them.

-- Whose token told a late report, and a digest of all that it says; NULL where that was not kept yet.
ALTER TABLE late_reports ADD COLUMN told_by TEXT;
ALTER TABLE late_reports ADD COLUMN digest TEXT;
CREATE UNIQUE INDEX late_reports_by_digest ON late_reports (task_id, digest);
CREATE INDEX late_reports_by_token ON late_reports (task_id, told_by);
CREATE INDEX late_reports_by_what_they_say
    ON late_reports (task_id, state, terminal, coalesce(terminal_status, ''), coalesce(site_order_id, ''));

CREATE INDEX events_by_kind ON events (subject, kind, actor, sequence);
