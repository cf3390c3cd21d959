"""The proxy loses the first two answers about a task, once each has been asked, and no other."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from socket import create_connection

import pytest

from clients.lossy import lossy_proxy


class Echo(socketserver.BaseRequestHandler):
    asked: list[bytes]

    def handle(self) -> None:
        with suppress(OSError):
            while data := self.request.recv(1024):
                self.asked.append(data)
                self.request.sendall(data)


@pytest.fixture
def proxy() -> Iterator[int]:
    Echo.asked = []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        with lossy_proxy(server.server_address[1]) as port:
            yield port
        server.shutdown()


def answer(port: int, question: bytes) -> bytes:
    """What comes back; nothing where the connection is reset."""
    with create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(question)
        try:
            return client.recv(1024)
        except ConnectionResetError:
            return b""


def test_the_first_two_answers_are_lost_after_the_question_was_answered(proxy: int) -> None:
    assert [answer(proxy, b"about lost-1") for _ in range(3)] == [b"", b"", b"about lost-1"]
    assert Echo.asked == [b"about lost-1"] * 3


def test_each_task_loses_its_own_and_others_lose_none(proxy: int) -> None:
    assert answer(proxy, b"about po-1") == b"about po-1"
    assert answer(proxy, b"about lost-1") == answer(proxy, b"about lost-2") == b""
