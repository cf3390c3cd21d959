"""The gateway of the gateway's own suites."""

from tests.gateway.conftest import gateway, time

__all__ = ["gateway", "time"]
