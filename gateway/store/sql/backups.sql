-- name: backup_add
INSERT INTO backups (made_at, file_name, size_bytes, sha256) VALUES (:at, :file_name, :size, :digest);

-- name: backup_last
SELECT made_at FROM backups ORDER BY row DESC LIMIT 1;
