-- Facts that rules ask for get a place of their own; the history is for people.

-- Reports that came too late to count, as they were told.
CREATE TABLE late_reports (
    row INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (task_id),
    worker_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('created', 'in_cart', 'ordered', 'awaiting_payment', 'paid', 'shipped', 'delivered', 'cancelled')),
    payable_yen INTEGER CHECK (payable_yen >= 0),
    pay_deadline TEXT,
    site_order_id TEXT,
    evidence_ref TEXT,
    detail TEXT NOT NULL,
    error_code INTEGER,
    sequence INTEGER,
    terminal INTEGER NOT NULL CHECK (terminal IN (0, 1)),
    terminal_status TEXT,
    refusal_reason TEXT NOT NULL,
    refusal TEXT NOT NULL,
    received_at TEXT NOT NULL
) STRICT;

CREATE INDEX late_reports_by_task ON late_reports (task_id, row);

CREATE TRIGGER late_reports_are_never_changed BEFORE UPDATE ON late_reports
BEGIN SELECT RAISE(ABORT, 'a late report is never changed'); END;
CREATE TRIGGER late_reports_are_never_deleted BEFORE DELETE ON late_reports
BEGIN SELECT RAISE(ABORT, 'a late report is never deleted'); END;

INSERT INTO late_reports (task_id, worker_id, state, payable_yen, pay_deadline, site_order_id, evidence_ref, detail,
    error_code, sequence, terminal, terminal_status, refusal_reason, refusal, received_at)
SELECT subject, coalesce(worker_id, actor), json_extract(details_json, '$.state'),
    json_extract(details_json, '$.payable_yen'), json_extract(details_json, '$.pay_deadline'),
    json_extract(details_json, '$.site_order_id'), json_extract(details_json, '$.evidence_ref'),
    coalesce(json_extract(details_json, '$.detail'), ''), json_extract(details_json, '$.error_code'),
    json_extract(details_json, '$.sequence'), coalesce(json_extract(details_json, '$.terminal'), 0),
    json_extract(details_json, '$.terminal_status'), json_extract(details_json, '$.refusal'), reason, occurred_at
FROM events WHERE kind = 'report_refused' ORDER BY sequence;

-- When the database was put back from a backup: what was forgotten then nobody knows.
CREATE TABLE restores (
    row INTEGER PRIMARY KEY,
    restored_at TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE INDEX restores_by_time ON restores (restored_at);

INSERT INTO restores (restored_at, reason)
SELECT occurred_at, reason FROM events WHERE subject = '' AND kind = 'restore' ORDER BY sequence;

-- Which backups were made and verified.
CREATE TABLE backups (
    row INTEGER PRIMARY KEY,
    made_at TEXT NOT NULL,
    file_name TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;

INSERT INTO backups (made_at, file_name, size_bytes, sha256)
SELECT occurred_at, coalesce(json_extract(details_json, '$.file'), ''),
    coalesce(json_extract(details_json, '$.bytes'), 0), coalesce(json_extract(details_json, '$.sha256'), '')
FROM events WHERE subject = '' AND kind = 'backup' ORDER BY sequence;

-- The last look at the site that the lease's holder has presented for a permit.
ALTER TABLE leases ADD COLUMN verification_verdict TEXT
    CHECK (verification_verdict IN ('not_ordered', 'ordered', 'unknown'));
ALTER TABLE leases ADD COLUMN verification_covers_window INTEGER CHECK (verification_covers_window IN (0, 1));
ALTER TABLE leases ADD COLUMN verification_evidence_ref TEXT;
ALTER TABLE leases ADD COLUMN verification_begun_us INTEGER
    CHECK ((verification_begun_us IS NULL) = (verification_verdict IS NULL));

CREATE TEMP TABLE looks AS
SELECT subject AS task_id, max(sequence) AS sequence
FROM events WHERE kind IN ('permit', 'permit_refused') AND json_extract(details_json, '$.verification') IS NOT NULL
GROUP BY subject;

UPDATE leases
SET verification_verdict = json_extract(details_json, '$.verification.verdict'),
    verification_covers_window = json_extract(details_json, '$.verification.window_fully_covered'),
    verification_evidence_ref = json_extract(details_json, '$.verification.evidence_ref'),
    verification_begun_us = json_extract(details_json, '$.verification.begun_at_us')
FROM looks JOIN events USING (sequence)
WHERE leases.task_id = looks.task_id AND leases.lease_number = (
    SELECT max(lease_number) FROM leases AS had
    WHERE had.task_id = looks.task_id AND had.started_at <= events.occurred_at
);

DROP TABLE looks;
ALTER TABLE leases DROP COLUMN permit_evidence_ref;

-- What an alert is about, apart from the words that people read.
ALTER TABLE alerts ADD COLUMN task_id TEXT;
ALTER TABLE alerts ADD COLUMN site TEXT;
ALTER TABLE alerts ADD COLUMN site_order_id TEXT
    CHECK ((site_order_id IS NULL) = (site IS NULL) AND (site IS NULL OR task_id IS NULL));

UPDATE alerts
SET (site, site_order_id) = (
    SELECT site, site_order_id FROM order_numbers WHERE site || '/' || site_order_id = alerts.subject LIMIT 1
)
WHERE kind = 'site_order_id_conflict' AND subject NOT IN (SELECT task_id FROM tasks);
UPDATE alerts SET task_id = subject
WHERE kind NOT IN ('worker_offline', 'callback_given_up') AND site IS NULL AND subject IN (SELECT task_id FROM tasks);

CREATE INDEX alerts_standing_of_task ON alerts (task_id) WHERE cleared_at IS NULL;
