-- name: restore_add
INSERT INTO restores (restored_at, reason) VALUES (:at, :reason);

-- name: restored_since
SELECT row FROM restores WHERE restored_at >= :since LIMIT 1;
