-- The upstream's own labels. The column is what is shown, the table what is searched; a trigger keeps them alike.
ALTER TABLE tasks
    ADD COLUMN labels_json text COLLATE "C" NOT NULL DEFAULT '{}' CHECK (labels_json LIKE '{%}');

CREATE TABLE task_labels (
    key text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 64),
    value text COLLATE "C" NOT NULL CHECK (length(value) <= 256),
    row bigint NOT NULL REFERENCES tasks (row),
    PRIMARY KEY (key, value, row)
);

CREATE FUNCTION find_by_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_labels (key, value, row)
    SELECT label.key, label.value, new.row FROM jsonb_each_text(new.labels_json::jsonb) AS label;
    RETURN NULL;
END $$;
CREATE TRIGGER tasks_are_found_by_labels AFTER INSERT ON tasks FOR EACH ROW WHEN (new.labels_json <> '{}')
EXECUTE FUNCTION find_by_labels();

CREATE TRIGGER labels_never_change BEFORE UPDATE OF labels_json ON tasks FOR EACH ROW
WHEN (new.labels_json <> old.labels_json) EXECUTE FUNCTION refuse('labels never change');
