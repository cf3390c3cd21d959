"""Waiting, apart from any transport: wake-ups, the desk where workers wait for orders, watching a task."""
