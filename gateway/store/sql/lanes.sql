-- name: lane_add
INSERT INTO lanes (site, account) VALUES (:site, :account) ON CONFLICT (site, account) DO NOTHING;

-- name: lanes_ready
SELECT head_row, account FROM lanes
WHERE site = :site AND head_row IS NOT NULL AND active_row IS NULL AND head_row > :after
ORDER BY head_row LIMIT :count;

-- name: query_lane_get
SELECT queued FROM query_lanes WHERE site = :site AND account = :account;

-- name: query_lanes_ready
SELECT site, account FROM query_lanes WHERE queued > 0;

-- name: lanes_longest_waiting
SELECT lanes.site, lanes.account, tasks.queued_us FROM lanes JOIN tasks ON tasks.row = lanes.head_row
WHERE lanes.head_row IS NOT NULL ORDER BY lanes.head_row LIMIT :count;

-- name: lanes_count
SELECT count(*) AS known, count(head_row) AS queued, count(active_row) AS active FROM lanes;
