"""What tells how the worker is: logs, metrics, traces."""
