"""The command `order-gateway`: the gateway itself, and what the person in charge types (docs/cli.md)."""

import os

# grpc writes to standard error by itself, past the log, and what strangers send among it: a server name with line
# breaks forged a line. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from gateway.cli.app import app, main

__all__ = ["app", "main"]
