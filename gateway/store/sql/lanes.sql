-- name: lane_add
INSERT INTO lanes (site, account) VALUES (:site, :account) ON CONFLICT (site, account) DO NOTHING;
