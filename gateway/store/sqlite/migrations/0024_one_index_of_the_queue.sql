-- One index of the queue in place of three, since a submission writes into each of them. The oldest of all that may be
-- handed out stand in the lanes. Of a target, first those without a condition that the permit judges, the only ones for
-- whoever asks for no permit: the expression is 0 for them.

DROP INDEX tasks_ready;
DROP INDEX tasks_plain_of_target;
DROP INDEX tasks_ready_of_target;
-- The status stands first, although it is the same in all of them: else the planner may prefer an index of all tasks.
CREATE INDEX tasks_ready_of_target ON tasks (
    status, site, account,
    (CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0 THEN 0 ELSE 1 END),
    row
) WHERE status = 'queued' AND held_until IS NULL;

DROP TRIGGER tasks_move_in_their_lane;
CREATE TRIGGER tasks_move_in_their_lane AFTER UPDATE OF status, held_until ON tasks
WHEN (new.status = 'queued' AND new.held_until IS NULL) <> (old.status = 'queued' AND old.held_until IS NULL)
    OR (new.slot IS NULL) <> (old.slot IS NULL)
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT min(row) FROM (
                SELECT * FROM (
                    SELECT row FROM tasks INDEXED BY tasks_ready_of_target
                    WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            THEN 0 ELSE 1 END = 0
                    ORDER BY row LIMIT 1
                )
                UNION ALL
                SELECT * FROM (
                    SELECT row FROM tasks INDEXED BY tasks_ready_of_target
                    WHERE status = 'queued' AND held_until IS NULL AND site = new.site AND account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            THEN 0 ELSE 1 END = 1
                    ORDER BY row LIMIT 1
                )
            )
        ),
        active_row = (
            SELECT row FROM tasks INDEXED BY tasks_active_of_target
            WHERE slot IS NOT NULL AND site = new.site AND account = new.account LIMIT 1
        )
    WHERE site = new.site AND account = new.account;
END;
