-- Notifications: what people are still to be told of alerts, a row for each channel; and how each channel answered last.

CREATE TABLE notifications (
    notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- A channel by the name that the settings give it, never by its URL.
    channel TEXT NOT NULL CHECK (length(channel) BETWEEN 1 AND 64),
    urgency TEXT NOT NULL CHECK (urgency IN ('now', 'escalation', 'digest')),
    alert_id INTEGER NOT NULL REFERENCES alerts (alert_id),
    edge TEXT NOT NULL CHECK (edge IN ('raised', 'cleared')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- When its delivery began, or is to begin, by the service clock.
    since_us INTEGER NOT NULL,
    due_us INTEGER NOT NULL,
    UNIQUE (channel, alert_id, edge)
) STRICT;
CREATE INDEX notifications_due ON notifications (channel, urgency, due_us);

CREATE TABLE notification_channels (
    channel TEXT PRIMARY KEY CHECK (length(channel) BETWEEN 1 AND 64),
    -- Tries in a row that were not taken; 0 after one that was.
    failures INTEGER NOT NULL CHECK (failures >= 0),
    told TEXT NOT NULL,
    tried_at TEXT NOT NULL
) STRICT;
