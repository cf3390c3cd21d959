-- name: catalog_round_filed
INSERT INTO catalog_targets (site, account, filed_us) VALUES (:site, :account, :elapsed_us)
ON CONFLICT (site, account) DO UPDATE SET filed_us = excluded.filed_us;

-- name: catalog_targets_due
SELECT site, account FROM catalog_targets
WHERE site = :site AND filed_us <= :filed_before_us
    AND (account = '' OR used_us IS NULL OR used_us > :used_after_us)
ORDER BY filed_us LIMIT :count;

-- name: catalog_targets_new
SELECT site, account FROM catalog_targets WHERE site = :site AND filed_us IS NULL
    AND (account = '' OR used_us IS NULL OR used_us > :used_after_us)
LIMIT :count;

-- name: catalog_target_of_site
SELECT account FROM catalog_targets WHERE site = :site LIMIT 1;

-- name: catalog_query_insert
INSERT INTO catalog_queries (query_id, site, account, order_number, since_at)
VALUES (:query_id, :site, :account, :order_number, :since_at);

-- name: catalog_query_get
SELECT * FROM catalog_queries WHERE query_id = :query_id;

-- name: catalog_list_in_flight
SELECT account_queries.query_id, account_queries.status
FROM catalog_queries JOIN account_queries USING (query_id)
WHERE catalog_queries.site = :site AND catalog_queries.account = :account AND catalog_queries.order_number IS NULL
    AND account_queries.status IN ('queued', 'leased')
ORDER BY account_queries.row DESC LIMIT 1;

-- name: catalog_order_seen
INSERT INTO catalog_orders (site, account, order_number, shop_id, shop_name, order_date, discovered_at, last_seen_at,
    seen)
VALUES (:site, :account, :order_number, :shop_id, :shop_name, :order_date, :at, :at,
    (SELECT coalesce(max(seen), 0) + 1 FROM catalog_orders))
ON CONFLICT (site, account, order_number) DO UPDATE
SET shop_id = CASE WHEN excluded.shop_id = '' THEN catalog_orders.shop_id ELSE excluded.shop_id END,
    shop_name = CASE WHEN excluded.shop_name = '' THEN catalog_orders.shop_name ELSE excluded.shop_name END,
    order_date = coalesce(excluded.order_date, catalog_orders.order_date), last_seen_at = excluded.last_seen_at,
    seen = excluded.seen;

-- name: catalog_order_get
SELECT * FROM catalog_orders WHERE site = :site AND account = :account AND order_number = :order_number;

-- name: catalog_order_asked
UPDATE catalog_orders SET detail_asked_us = :elapsed_us
WHERE site = :site AND account = :account AND order_number = :order_number;

-- name: catalog_order_detail
UPDATE catalog_orders
SET delivery_status = :delivery_status, order_state = :order_state, detail_fetched_at = :at
WHERE site = :site AND account = :account AND order_number = :order_number;

-- name: catalog_orders_to_ask
SELECT order_number FROM catalog_orders AS seen
WHERE site = :site AND account = :account AND (order_state IS NULL OR order_state NOT IN ('delivered', 'cancelled'))
    AND NOT EXISTS (
        SELECT 1 FROM catalog_queries JOIN account_queries USING (query_id)
        WHERE catalog_queries.site = seen.site AND catalog_queries.account = seen.account
            AND catalog_queries.order_number = seen.order_number
            AND account_queries.status IN ('queued', 'leased')
    )
ORDER BY detail_asked_us NULLS FIRST, row LIMIT :count;

-- name: catalog_latest
SELECT * FROM catalog_orders WHERE seen < :below ORDER BY seen DESC LIMIT :count OFFSET :skip;

-- name: catalog_latest_by_site
SELECT * FROM catalog_orders WHERE site = :site AND seen < :below ORDER BY seen DESC LIMIT :count OFFSET :skip;

-- name: catalog_latest_by_account
SELECT * FROM catalog_orders
WHERE account = :account AND account <> '' AND (CAST(:site AS text) IS NULL OR site = :site) AND seen < :below
ORDER BY seen DESC LIMIT :count OFFSET :skip;

-- name: catalog_count
SELECT count(*) AS count FROM catalog_orders
WHERE (CAST(:site AS text) IS NULL OR site = :site) AND (CAST(:account AS text) IS NULL OR account = :account);

-- name: catalog_unknown_add
INSERT INTO catalog_discrepancies (kind, site, account, order_number, task_id, task_state, site_state, found_at)
SELECT 'unknown_to_tasks', seen.site, seen.account, seen.order_number, '', NULL, seen.order_state, :at
FROM catalog_orders AS seen
WHERE seen.site = :site AND seen.account = :account AND seen.order_number = :order_number
    AND NOT EXISTS (
        SELECT 1 FROM order_numbers AS told
        WHERE told.site = seen.site AND told.account = seen.account AND told.site_order_id = seen.order_number
    )
ON CONFLICT (kind, site, account, order_number, task_id) DO UPDATE SET site_state = excluded.site_state;

-- name: catalog_moved_on_add
INSERT INTO catalog_discrepancies (kind, site, account, order_number, task_id, task_state, site_state, found_at)
SELECT 'state_moved_on', seen.site, seen.account, seen.order_number, tasks.task_id, tasks.latest_state, seen.order_state,
    :at
FROM catalog_orders AS seen
JOIN order_numbers AS told
    ON told.site = seen.site AND told.account = seen.account AND told.site_order_id = seen.order_number
JOIN tasks ON tasks.task_id = told.task_id
JOIN order_state_ranks AS site_rank ON site_rank.state = seen.order_state
JOIN order_state_ranks AS task_rank ON task_rank.state = tasks.latest_state
WHERE seen.site = :site AND seen.account = :account AND seen.order_number = :order_number
    AND site_rank.rank > task_rank.rank
ON CONFLICT (kind, site, account, order_number, task_id) DO UPDATE
SET task_state = excluded.task_state, site_state = excluded.site_state;

-- name: catalog_missing_add
INSERT INTO catalog_discrepancies (kind, site, account, order_number, task_id, task_state, site_state, found_at)
SELECT 'missing_on_site', told.site, told.account, told.site_order_id, tasks.task_id, tasks.latest_state,
    seen.order_state, :at
FROM order_numbers AS told
-- A cross join is made in the order written: from the numbers of the window, not from all tasks of the site.
CROSS JOIN tasks
LEFT JOIN catalog_orders AS seen
    ON seen.site = told.site AND seen.account = told.account AND seen.order_number = told.site_order_id
WHERE tasks.task_id = told.task_id AND told.site = :site AND told.account = :account
    AND told.told_at BETWEEN :since AND :until
    AND tasks.created_at >= :since AND (tasks.latest_state IS NULL OR tasks.latest_state <> 'cancelled')
    AND (seen.row IS NULL OR seen.last_seen_at < :at)
ON CONFLICT (kind, site, account, order_number, task_id) DO NOTHING;

-- name: catalog_settled_drop
DELETE FROM catalog_discrepancies AS found
WHERE CASE kind
    WHEN 'unknown_to_tasks' THEN EXISTS (
        SELECT 1 FROM order_numbers AS told
        WHERE told.site = found.site AND told.account = found.account AND told.site_order_id = found.order_number
    )
    WHEN 'missing_on_site' THEN NOT EXISTS (
        SELECT 1 FROM order_numbers AS told
        WHERE told.site = found.site AND told.account = found.account AND told.site_order_id = found.order_number
            AND told.task_id = found.task_id
    ) OR EXISTS (
        SELECT 1 FROM catalog_orders AS seen
        WHERE seen.site = found.site AND seen.account = found.account AND seen.order_number = found.order_number
            AND seen.last_seen_at > found.found_at
    ) OR EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = found.task_id AND tasks.latest_state = 'cancelled')
    ELSE NOT EXISTS (
        SELECT 1 FROM catalog_orders AS seen
        JOIN order_numbers AS told
            ON told.site = seen.site AND told.account = seen.account AND told.site_order_id = seen.order_number
            AND told.task_id = found.task_id
        JOIN tasks ON tasks.task_id = told.task_id
        JOIN order_state_ranks AS site_rank ON site_rank.state = seen.order_state
        JOIN order_state_ranks AS task_rank ON task_rank.state = tasks.latest_state
        WHERE seen.site = found.site AND seen.account = found.account AND seen.order_number = found.order_number
            AND site_rank.rank > task_rank.rank
    )
END;

-- name: catalog_discrepancies_newest
SELECT * FROM catalog_discrepancies
WHERE (CAST(:kind AS text) IS NULL OR kind = :kind) AND (CAST(:site AS text) IS NULL OR site = :site)
    AND (CAST(:account AS text) IS NULL OR account = :account) AND row < :below
ORDER BY row DESC LIMIT :count OFFSET :skip;

-- name: catalog_discrepancies_count
SELECT count(*) AS count FROM catalog_discrepancies
WHERE (CAST(:kind AS text) IS NULL OR kind = :kind) AND (CAST(:site AS text) IS NULL OR site = :site)
    AND (CAST(:account AS text) IS NULL OR account = :account);
