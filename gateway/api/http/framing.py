"""Where one request ends and the next begins, read so strictly that no proxy in front can read it otherwise.

h11 refuses most of what RFC 9112 calls malformed. What it takes although two programs may read it differently, which is
how requests are smuggled past a proxy, is refused here: a length beside a transfer encoding (section 6.1), lines that
do not end in CRLF (2.2), folded headers (5.2).
"""

from collections.abc import Callable
from typing import Final

import h11

_END_OF_HEAD: Final = b"\r\n\r\n"


class FramingError(h11.RemoteProtocolError):
    """The request is refused with 400, and the connection with it; the message says why."""


class StrictConnection(h11.Connection):
    """h11's connection of a server. `on_next_cycle` is called when request and answer are through."""

    def __init__(self, max_incomplete_event_size: int, on_next_cycle: Callable[[], None]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self._on_next_cycle = on_next_cycle

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. Raises RemoteProtocolError for no request, FramingError for what may be two."""
        if self.their_state is h11.IDLE:
            _check_lines(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_length(event)
        return event

    def start_next_cycle(self) -> None:
        """Begin with the next request."""
        super().start_next_cycle()
        self._on_next_cycle()


def _check_lines(received: bytes) -> None:
    """Refuse a head, or what has come of it, whose lines end otherwise than in CRLF or are folded."""
    end = received.find(_END_OF_HEAD)
    head = received.removesuffix(b"\r") if end < 0 else received[: end + len(_END_OF_HEAD)]
    if not head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r"):
        raise FramingError("lines of the request must end in CRLF")
    if b"\n " in head or b"\n\t" in head:
        raise FramingError("a header must not be folded over several lines")


def _check_length(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" not in names:
        return
    if b"content-length" in names:
        raise FramingError("send Content-Length or Transfer-Encoding, not both")
    if request.http_version < b"1.1":
        raise FramingError("HTTP/1.0 knows no Transfer-Encoding")
