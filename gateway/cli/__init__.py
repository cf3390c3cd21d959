"""The command `order-gateway`: the gateway itself, and what the person in charge types (docs/cli.md)."""

from gateway.cli.app import app, main

__all__ = ["app", "main"]
