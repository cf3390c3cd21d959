-- name: lane_head
SELECT head_row FROM lanes WHERE site = :site AND account = :account AND head_row IS NOT NULL;

-- name: lanes_ready
SELECT head_row, account FROM lanes
WHERE site = :site AND head_row IS NOT NULL AND active_row IS NULL AND head_row > :after
ORDER BY head_row LIMIT :count;

-- name: query_lane_get
SELECT queued FROM query_lanes WHERE site = :site AND account = :account;

-- name: query_lanes_ready
SELECT site, account FROM query_lanes WHERE queued > 0;

-- name: lanes_longest_waiting
SELECT tasks.task_id, tasks.site, tasks.account, tasks.created_at, tasks.queued_us
FROM (SELECT head_row FROM lanes WHERE head_row IS NOT NULL ORDER BY head_row LIMIT :count) AS heads
JOIN tasks ON tasks.row = heads.head_row
ORDER BY heads.head_row;

-- name: lanes_count
SELECT (SELECT count(*) FROM catalog_targets) AS known, count(head_row) AS queued, count(active_row) AS active FROM lanes;
