"""The command `order-worker`."""

from worker.cli.app import main

__all__ = ["main"]
