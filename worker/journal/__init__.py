"""The journal: one SQLite file that is the authority on what this worker did (specification, section 5)."""
