"""The store: its named statements, what every engine must show, and what SQLite shows alone."""
