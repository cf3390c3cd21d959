"""The gateway beside other queues on PostgreSQL: one load for all, on one server, each in a database of its own."""
