"""A proxy on loopback that loses the first two answers about each task whose id begins with `lost-`.

The gateway gets the request and carries it out; its answer never reaches the client, whose connection is reset. What a
client makes of that is the heart of the contract: the same request again, under the same task_id.
"""

import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOST_ANSWERS = 2
GRACE_SECONDS = 1
_ABOUT = re.compile(rb"lost-[a-z0-9-]+")
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class _Connection:
    """One connection through the proxy. Doomed, it passes no answer any more, and is reset."""

    def __init__(self, client: socket.socket, gateway: socket.socket, lost: Counter[bytes]) -> None:
        self._client, self._gateway, self._lost = client, gateway, lost
        self._doomed = threading.Event()
        for pump in (self._requests, self._answers):
            threading.Thread(target=pump, daemon=True).start()

    def _requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(65536):
                about = _ABOUT.search(data)
                if about and self._lost[about[0]] < LOST_ANSWERS and not self._doomed.is_set():
                    self._lost[about[0]] += 1
                    self._doomed.set()
                    # An answer that is compressed does not show its task: then this is long enough for it.
                    threading.Timer(GRACE_SECONDS, self._reset).start()
                self._gateway.sendall(data)
        self._reset()

    def _answers(self) -> None:
        with suppress(OSError):
            while data := self._gateway.recv(65536):
                if not self._doomed.is_set():
                    self._client.sendall(data)
                elif _ABOUT.search(data):
                    break
        self._reset()

    def _reset(self) -> None:
        for end in (self._client, self._gateway):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
                end.shutdown(socket.SHUT_RDWR)  # wakes the other thread, which a close alone does not
            end.close()


@contextmanager
def lossy_proxy(gateway_port: int) -> Iterator[int]:
    """Serves until the context ends; yields the proxy's port."""
    lost: Counter[bytes] = Counter()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    _Connection(client, socket.create_connection(("127.0.0.1", gateway_port)), lost)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
