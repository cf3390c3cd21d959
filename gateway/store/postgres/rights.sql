-- What the role of the gateways may do: exactly what their statements and triggers need. It owns nothing, so it cannot
-- change the schema, truncate a table or disable a trigger. Exact however often it runs: `order-gateway migrate --grant-to`.
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};

-- The history, in the wider sense: it is added to and never changed.
GRANT INSERT ON backups, events, late_reports, restores, query_results, catalog_queries, task_labels TO {role};

-- What moves on, and stays.
GRANT INSERT, UPDATE ON alerts, approvals, budget_entries, budget_periods, budgets, callbacks, catalog_orders,
    clock_anchor, notification_channels, proposals, query_counts, sweep_leader, target_counts, tasks TO {role};

-- What comes and goes. Triggers say which rows of leases and account_queries may go.
GRANT INSERT, DELETE ON pauses, store_groups TO {role};
GRANT INSERT, UPDATE, DELETE ON account_queries, alert_deliveries, catalog_discrepancies, catalog_targets, database_life,
    gateways, lanes, leases, notifications, order_numbers, query_attempts, query_lanes, reports, streams, workers TO {role};
