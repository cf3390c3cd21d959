-- name: pauses_all
-- An override: while no standby confirms commits where one is counted on, dispatch is paused, since a promotion could lose
-- a lease or a permit (docs/postgresql.md#a-standby). It is read anew in each transaction, and stands in no table.
SELECT site, paused_at, paused_by, reason FROM pauses
UNION ALL
SELECT '', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'gateway',
    'synchronous_standby_names of the database''s server is empty: no standby confirms what is leased or permitted'
WHERE current_setting('order_gateway.standby', true) = 'synchronous'
    AND current_setting('synchronous_standby_names') = ''
ORDER BY site;
