-- name: target_get
SELECT CASE WHEN used_us > :stamped_after_us THEN 1 ELSE 0 END AS is_stamped FROM catalog_targets
WHERE site = :site AND account = :account;

-- name: target_use
INSERT INTO catalog_targets (site, account, introduced_by, used_us) VALUES (:site, :account, :identity, :elapsed_us)
ON CONFLICT (site, account) DO UPDATE SET used_us = excluded.used_us;

-- name: target_keep
UPDATE catalog_targets SET used_us = :elapsed_us
WHERE site = :site AND account = :account AND (used_us IS NULL OR used_us <= :stamped_after_us);

-- name: target_counts
SELECT CAST(coalesce(sum(CASE WHEN introduced_by = :identity THEN count END), 0) AS bigint) AS of_identity,
    CAST(coalesce(sum(count), 0) AS bigint) AS in_all
FROM target_counts;

-- name: targets_begin
-- Those that were known before this was written down, or that nobody named.
UPDATE catalog_targets SET used_us = :elapsed_us WHERE (site, account) IN (
    SELECT site, account FROM catalog_targets WHERE account <> '' AND used_us IS NULL LIMIT :count
);

-- name: targets_unused
-- What is in use beside being named: it holds back the target. A query that is open does too, but begins nothing anew:
-- the catalogue may have filed it.
SELECT site, account, used_us,
    CASE WHEN EXISTS (
        SELECT 1 FROM tasks WHERE tasks.status IN ('queued', 'leased', 'running', 'stale', 'needs_human')
            AND tasks.account = unused.account AND tasks.account <> '' AND tasks.site = unused.site
    ) OR EXISTS (
        SELECT 1 FROM pauses WHERE pauses.site IN ('', unused.site)
    ) OR (site, account) IN (
        SELECT tasks.site, tasks.account FROM alerts JOIN tasks ON tasks.task_id = alerts.task_id
        WHERE alerts.cleared_at IS NULL
        UNION
        SELECT told.site, told.account FROM alerts JOIN order_numbers AS told USING (site, site_order_id)
        WHERE alerts.cleared_at IS NULL
    ) THEN 1 ELSE 0 END AS is_used,
    CASE WHEN EXISTS (
        SELECT 1 FROM query_lanes
        WHERE query_lanes.site = unused.site AND query_lanes.account = unused.account AND query_lanes.queued > 0
    ) OR (site, account) IN (
        SELECT leased.site, leased.account FROM account_queries AS leased WHERE leased.lease_deadline_us IS NOT NULL
    ) THEN 1 ELSE 0 END AS has_queries
FROM catalog_targets AS unused
WHERE account <> '' AND used_us <= :before_us AND (used_us, site, account) > (:after_us, :after_site, :after_account)
ORDER BY used_us, site, account LIMIT :count;

-- name: target_forget
DELETE FROM catalog_targets WHERE site = :site AND account = :account;

-- name: lane_forget
DELETE FROM lanes WHERE site = :site AND account = :account AND head_row IS NULL AND active_row IS NULL;

-- name: query_lane_forget
DELETE FROM query_lanes WHERE site = :site AND account = :account AND queued = 0;
