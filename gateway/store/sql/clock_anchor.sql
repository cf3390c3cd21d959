-- name: clock_anchor_get
SELECT * FROM clock_anchor WHERE one = 1;

-- name: clock_anchor_set
INSERT INTO clock_anchor (one, boot_id, boot_us, elapsed_us, utc) VALUES (1, :boot_id, :boot_us, :elapsed_us, :utc)
ON CONFLICT (one) DO UPDATE SET boot_id = excluded.boot_id, boot_us = excluded.boot_us,
    elapsed_us = excluded.elapsed_us, utc = excluded.utc;
