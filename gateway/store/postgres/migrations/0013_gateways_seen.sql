-- What each gateway tells of itself every few seconds. A gateway of the version before leaves last_seen_us NULL.
ALTER TABLE gateways
    ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN version text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN last_seen_at text COLLATE "C",
    ADD COLUMN last_seen_us bigint,
    ADD COLUMN waiting bigint NOT NULL DEFAULT 0,
    ADD COLUMN problems_json text COLLATE "C" NOT NULL DEFAULT '[]';

-- At which gateway a worker was last seen waiting for an order.
ALTER TABLE workers ADD COLUMN gateway text COLLATE "C" NOT NULL DEFAULT '';
