"""A receiver of webhooks on a real socket, which answers as a test wants."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """What came in, and what to answer: a status, or None to close the connection without a word."""

    def __init__(self) -> None:
        self.answer: int | None = 204
        self.location = ""
        self.bodies: list[dict[str, Any]] = []
        self.contents: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.ids: list[str] = []
        self.url = ""
        self.got_one = threading.Event()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve a receiver."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            receiver.contents.append(content)
            receiver.bodies.append(json.loads(content))
            receiver.headers.append(dict(self.headers))
            receiver.ids.append(self.headers["webhook-id"])
            receiver.got_one.set()
            if receiver.answer is None:
                self.close_connection = True
                return
            self.send_response(receiver.answer)
            if receiver.location:
                self.send_header("location", receiver.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/alerts?key=secret"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
