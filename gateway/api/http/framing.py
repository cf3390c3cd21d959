"""Where one request ends and the next begins, read so strictly that no proxy in front can read it otherwise.

h11 refuses most of what RFC 9112 calls malformed. What it takes although two programs may read it differently, which is
how requests are smuggled past a proxy, is refused here: a length beside a transfer encoding (section 6.1) or given
twice (6.3), lines that do not end in CRLF (2.2), those of chunks (7.1) and trailers among them, folded headers (5.2).
"""

from collections.abc import Callable
from typing import Final

import h11
from h11._receivebuffer import ReceiveBuffer

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
_NOT_CRLF: Final = "lines of the request must end in CRLF"
_FOLDED: Final = "a header must not be folded over several lines"


class FramingError(h11.RemoteProtocolError):
    """The request is refused with 400, and the connection with it; the message says why."""


class StrictConnection(h11.Connection):
    """h11's connection of a server. `on_next_cycle` is called when request and answer are through."""

    def __init__(self, max_incomplete_event_size: int, on_next_cycle: Callable[[], None]) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self._receive_buffer = _StrictBuffer()
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


class _StrictBuffer(ReceiveBuffer):
    """h11's buffer, which sees lines as they came: a head's and trailers' together, a chunk's by itself."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to an empty one. Raises FramingError if one does not end in CRLF, or is folded."""
        held = len(self)
        lines = super().maybe_extract_lines()
        if lines is None:
            return None
        if held - len(self) != sum(len(line) + 2 for line in lines) + 2 or any(b"\r" in line for line in lines):
            raise FramingError(_NOT_CRLF)
        if any(line.startswith((b" ", b"\t")) for line in lines):
            raise FramingError(_FOLDED)
        lengths = [line for line in lines if line[: len(_LENGTH)].lower() == _LENGTH]
        if len(lengths) > 1 or any(b"," in line for line in lengths):
            raise FramingError("send Content-Length once")
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Return the line of a chunk's size. Raises FramingError if it holds half a line end."""
        line = super().maybe_extract_next_line()
        if line is not None and line.count(b"\r") != 1:
            raise FramingError(_NOT_CRLF)
        return line


def _check_lines(received: bytes) -> None:
    """Refuse a head, or what has come of it, whose lines end otherwise than in CRLF or are folded."""
    end = received.find(_END_OF_HEAD)
    head = received.removesuffix(b"\r") if end < 0 else received[: end + len(_END_OF_HEAD)]
    if not head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r"):
        raise FramingError(_NOT_CRLF)
    if b"\n " in head or b"\n\t" in head:
        raise FramingError(_FOLDED)


def _check_length(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" not in names:
        return
    if b"content-length" in names:
        raise FramingError("send Content-Length or Transfer-Encoding, not both")
    if request.http_version < b"1.1":
        raise FramingError("HTTP/1.0 knows no Transfer-Encoding")
