"""The journal: one SQLite file that is the authority on what this worker did (docs/specification.md#journal)."""
