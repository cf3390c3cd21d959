"""The gateway of the gateway's own suites."""

from tests.gateway.cli.conftest import commands
from tests.gateway.conftest import gateway, time

__all__ = ["commands", "gateway", "time"]
