-- The upstream's own labels. The column is what is shown, the table what is searched; a trigger keeps them alike.
ALTER TABLE tasks ADD COLUMN labels_json TEXT NOT NULL DEFAULT '{}' CHECK (labels_json LIKE '{%}');

CREATE TABLE task_labels (
    key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 64),
    value TEXT NOT NULL CHECK (length(value) <= 256),
    row INTEGER NOT NULL REFERENCES tasks (row),
    PRIMARY KEY (key, value, row)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tasks_are_found_by_labels AFTER INSERT ON tasks WHEN new.labels_json <> '{}'
BEGIN
    INSERT INTO task_labels (key, value, row) SELECT key, value, new.row FROM json_each(new.labels_json);
END;
CREATE TRIGGER labels_never_change BEFORE UPDATE OF labels_json ON tasks WHEN new.labels_json <> old.labels_json
BEGIN SELECT RAISE(ABORT, 'labels never change'); END;
