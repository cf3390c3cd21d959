"""A command reads pages to their end, and never for ever."""

from typing import Any

from ordergateway.v1 import operations_pb2

from gateway.cli.client import Client


class Endless:
    """A client whose gateway always has one more page, each with `size` events."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.calls = 0

    def call(self, _method: Any, _request: Any) -> operations_pb2.ListEventsResponse:
        self.calls += 1
        return operations_pb2.ListEventsResponse(events=[{"sequence": 1}] * self.size, next_page_token="more")


def test_pages_that_bring_nothing_end_the_list() -> None:
    client: Any = Endless(0)
    assert Client.pages(client, None, operations_pb2.ListEventsRequest(), "events", 50) == []  # type: ignore[arg-type]
    assert client.calls == 1


def test_a_list_ends_with_what_was_asked_for() -> None:
    client: Any = Endless(20)
    assert len(Client.pages(client, None, operations_pb2.ListEventsRequest(), "events", 50)) == 60  # type: ignore[arg-type]
    assert client.calls == 3
