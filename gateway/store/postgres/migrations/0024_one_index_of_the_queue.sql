-- One index of the queue in place of three, since a submission writes into each of them. The oldest of all that may be
-- handed out stand in the lanes. Of a target, first those without a condition that the permit judges, the only ones for
-- whoever asks for no permit: the expression is 0 for them.

DROP INDEX tasks_ready;
DROP INDEX tasks_plain_of_target;
DROP INDEX tasks_ready_of_target;
CREATE INDEX tasks_ready_of_target ON tasks (
    status, site, account,
    (CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0 THEN 0 ELSE 1 END),
    row
) WHERE status = 'queued' AND held_until IS NULL;

CREATE OR REPLACE FUNCTION move_in_a_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lanes
    SET head_row = (
            SELECT min(oldest.row) FROM (
                (
                    SELECT tasks.row FROM tasks
                    WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                        AND tasks.site = new.site AND tasks.account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            THEN 0 ELSE 1 END = 0
                    ORDER BY tasks.row LIMIT 1
                )
                UNION ALL
                (
                    SELECT tasks.row FROM tasks
                    WHERE tasks.status = 'queued' AND tasks.held_until IS NULL
                        AND tasks.site = new.site AND tasks.account = new.account
                        AND CASE WHEN max_total_yen IS NULL AND not_after IS NULL AND stop_before_submit = 0
                            THEN 0 ELSE 1 END = 1
                    ORDER BY tasks.row LIMIT 1
                )
            ) AS oldest
        ),
        active_row = (
            SELECT tasks.row FROM tasks
            WHERE tasks.slot IS NOT NULL AND tasks.site = new.site AND tasks.account = new.account LIMIT 1
        )
    WHERE lanes.site = new.site AND lanes.account = new.account;
    RETURN NULL;
END $$;
