"""The command `order-worker`."""

from worker.cli.app import app, main

__all__ = ["app", "main"]
