-- name: tasks_in_rows
-- PostgreSQL reads JSON by functions of other names.
SELECT * FROM tasks WHERE row IN (SELECT CAST(value AS bigint) FROM jsonb_array_elements_text(CAST(:rows AS jsonb)));

-- name: rows_matching
-- PostgreSQL reads JSON by functions of other names.
SELECT row FROM tasks
WHERE row IN (SELECT CAST(value AS bigint) FROM jsonb_array_elements_text(CAST(:rows AS jsonb)))
    AND (:statuses = '' OR replace(:statuses, ',' || status || ',', '') <> :statuses)
    AND (:site = '' OR site = :site)
    AND (:account = '' OR account = :account)
    AND (:prefix = '' OR substr(task_id, 1, length(:prefix)) = :prefix)
    AND (:contained = '' OR replace(task_id, :contained, '') <> task_id)
    AND (:site_order_id = '' OR EXISTS (
        SELECT 1 FROM order_numbers
        WHERE order_numbers.task_id = tasks.task_id AND order_numbers.site_order_id = :site_order_id
    ))
    AND (:needs_decision = 0 OR EXISTS (
        SELECT 1 FROM alerts WHERE alerts.task_id = tasks.task_id AND alerts.cleared_at IS NULL
    ) OR EXISTS (
        SELECT 1 FROM order_numbers JOIN alerts USING (site, site_order_id)
        WHERE order_numbers.task_id = tasks.task_id AND alerts.cleared_at IS NULL
    ))
    AND NOT EXISTS (
        SELECT 1 FROM jsonb_each_text(CAST(:labels AS jsonb)) AS wanted
        WHERE NOT EXISTS (
            SELECT 1 FROM task_labels
            WHERE task_labels.key = wanted.key AND task_labels.value = wanted.value AND task_labels.row = tasks.row
        )
    );
