"""The use cases of orders, on a real SQLite file."""
