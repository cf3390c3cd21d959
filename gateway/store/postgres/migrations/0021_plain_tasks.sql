-- The queue of a target for whoever asks for no permit: tasks without a condition that the permit judges.
CREATE INDEX tasks_plain_of_target ON tasks (status, site, account, row)
WHERE status = 'queued' AND held_until IS NULL AND max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0;
