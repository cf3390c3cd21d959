"""What all waiting streams share."""

from typing import Final

from gateway.domain.refusals import Reason, Refusal, RefusedError

HEARTBEAT_SECONDS: Final = 10.0
"""A stream with nothing to say sends a heartbeat this often: a proxy counts bytes, not HTTP/2 pings."""

POLL_SECONDS: Final = 1.0
"""Nobody waits for longer than this on a hint that was lost."""


class Heartbeat:
    """A sign of life on a stream that has nothing to say."""


HEARTBEAT: Final = Heartbeat()


def shutting_down() -> RefusedError:
    """Make the refusal that ends a wait when the gateway stops."""
    return RefusedError(Refusal(Reason.SHUTTING_DOWN, "the gateway is stopping; come back"))
