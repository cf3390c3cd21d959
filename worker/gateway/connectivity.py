"""Whether the gateway answers: told once in the log when it first does, and again after every outage."""

import logging

_log = logging.getLogger(__name__)


class Reach:
    """Fed by the client with what came of its calls."""

    def __init__(self) -> None:
        self._reached = False
        self._before = False

    def answered(self) -> None:
        """Note that the gateway answered, and took the token."""
        if not self._reached:
            _log.info("gateway reached again" if self._before else "gateway reached")
        self._reached = self._before = True

    def lost(self) -> None:
        """Note that it did not answer, or refused the token."""
        self._reached = False
