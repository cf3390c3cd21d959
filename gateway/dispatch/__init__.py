"""Waiting, apart from any transport: notifications, who of those who wait gets a lease, watching a task or a query."""
