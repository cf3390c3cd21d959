"""What the SQLite engine shows alone: its file, its locks, its log, its query plans."""
