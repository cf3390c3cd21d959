"""The PostgreSQL engine alone: its schema, the server it needs, faults of the connection."""
