"""The SQLite engine: one file, one writer thread that commits in groups, a few readers."""
