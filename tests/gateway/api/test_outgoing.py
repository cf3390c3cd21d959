"""Answers over gRPC that are not taken: how much room there is for whom, who waits, who is refused, who is cut off."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.api.grpc import outgoing
from gateway.api.grpc.connections import cut_off
from gateway.api.grpc.outgoing import (
    MAX_BYTES,
    MAX_BYTES_OF_CONNECTION,
    MAX_BYTES_OF_ONE,
    MAX_WAITING_BYTES,
    PAGE_BYTES,
    PATIENCE_SECONDS,
    SMALL_BYTES,
    Answer,
    Outgoing,
)
from gateway.domain.refusals import Reason, RefusedError

MIB = 1024 * 1024


class Context:
    """The part of grpc's context that is used."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self.end: Callable[[Any], None]

    def peer(self) -> str:
        return self._peer

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.end = callback


def begin(room: Outgoing, peer: str, owner: str = "shop", *, of_workers: bool = False) -> Answer:
    return room.answer(owner, Context(peer), waits=not of_workers)  # type: ignore[arg-type]


def bytes_of(size: int) -> list[bytes]:
    return [bytes(size)]


async def fill(room: Outgoing, owner: str, size: int, peers: str) -> list[Answer]:
    """Leave so many bytes, a page a connection."""
    answers = []
    for number in range(size // PAGE_BYTES):
        answers.append(begin(room, f"{peers}{number}", owner))
        await answers[-1].leave(bytes_of(PAGE_BYTES))
    return answers


async def waiting(doing: Any) -> "asyncio.Task[None]":
    """What is being done, and has to wait."""
    task = asyncio.ensure_future(doing)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    return task


def seconds(room: Outgoing, count: int) -> list[set[str]]:
    return [set(room.late()) for _ in range(count)]


async def test_a_connection_has_its_share_and_small_answers_have_more() -> None:
    room = Outgoing()
    await begin(room, "a").leave(bytes_of(PAGE_BYTES))
    await begin(room, "a").leave(bytes_of(MAX_BYTES_OF_CONNECTION - PAGE_BYTES))
    one_byte_more = await waiting(begin(room, "a").leave(bytes_of(SMALL_BYTES + 1)))
    await begin(room, "a").leave(bytes_of(SMALL_BYTES))
    await begin(room, "b").leave(bytes_of(SMALL_BYTES + 1))
    one_byte_more.cancel()


async def test_a_token_has_its_share_and_others_have_theirs() -> None:
    room = Outgoing()
    left = await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    page = begin(room, "new")
    reserving = await waiting(page.reserve(page=True))
    await begin(room, "new").leave(bytes_of(SMALL_BYTES))
    await begin(room, "new").reserve(page=False)
    await begin(room, "other", "other").reserve(page=True)
    for answer in left[:2]:
        answer.taken()
    await reserving
    assert page.size == PAGE_BYTES


async def test_a_token_always_has_room_for_a_page_and_workers_never_wait() -> None:
    room = Outgoing()
    for owner in ("first", "second"):
        await fill(room, owner, MAX_BYTES // 2, owner)
    await begin(room, "c", "third").reserve(page=True)
    second = await waiting(begin(room, "d", "third").reserve(page=True))
    await begin(room, "d", "third", of_workers=True).leave(bytes_of(PAGE_BYTES))
    second.cancel()


async def test_the_connection_that_holds_least_comes_first() -> None:
    room = Outgoing()
    left = await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    order: list[str] = []

    async def reserve(peer: str) -> None:
        await begin(room, peer).reserve(page=True)
        order.append(peer)

    tasks = [await waiting(reserve(peer)) for peer in ("a1", "a2", "new")]
    for answer in left:
        answer.taken()
        await asyncio.sleep(0.001)
    await asyncio.gather(*tasks)
    assert order[0] == "new"


async def test_a_page_that_is_made_needs_only_what_it_has() -> None:
    room = Outgoing()
    for _ in range(2):
        answer = begin(room, "a")
        await answer.reserve(page=True)
        await answer.leave(bytes_of(MIB))


async def test_only_who_is_in_the_way_of_others_is_cut_off_and_not_too_soon() -> None:
    room = Outgoing()
    left = await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    await begin(room, "z", "other").leave(bytes_of(PAGE_BYTES))
    assert not any(seconds(room, 10 * PATIENCE_SECONDS))
    reserving = await waiting(begin(room, "new").reserve(page=True))
    assert seconds(room, 1) == [{answer.peer for answer in left}]
    left[0].taken()
    await reserving
    assert not any(seconds(room, 1))


async def test_an_answer_is_left_alone_until_its_time_is_up() -> None:
    room = Outgoing()
    left = await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    reserving = await waiting(begin(room, "new").reserve(page=True))
    assert seconds(room, PATIENCE_SECONDS) == [set()] * (PATIENCE_SECONDS - 1) + [{answer.peer for answer in left}]
    reserving.cancel()


async def test_who_waits_for_its_own_connection_has_nobody_cut_off() -> None:
    room = Outgoing()
    await begin(room, "a").leave(bytes_of(PAGE_BYTES))
    reserving = await waiting(begin(room, "a").reserve(page=True))
    assert not any(seconds(room, 2 * PATIENCE_SECONDS))
    reserving.cancel()


async def test_who_waits_for_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "WAIT_SECONDS", 0.01)
    room = Outgoing()
    await begin(room, "a").leave(bytes_of(PAGE_BYTES))
    with pytest.raises(RefusedError) as told:
        await begin(room, "a").reserve(page=True)
    assert told.value.refusal.reason is Reason.TOO_MANY


async def test_where_too_much_waits_the_connection_that_holds_most_is_refused() -> None:
    room = Outgoing()
    await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    boxes = [bytes_of(MIB) for _ in range(MAX_WAITING_BYTES // MIB)]
    many = [await waiting(begin(room, "many").leave(box)) for box in boxes]
    few = await waiting(begin(room, "few").leave(bytes_of(MIB)))
    with pytest.raises(RefusedError):
        await many.pop()
    assert [len(box) for box in boxes] == [1] * (len(boxes) - 1) + [0]
    for task in (*many, few):
        assert not task.done()
        task.cancel()


async def test_where_a_token_has_no_room_left_a_connection_has_a_little() -> None:
    room = Outgoing()
    await fill(room, "shop", MAX_BYTES_OF_ONE, "a")
    made = await waiting(begin(room, "b").leave(bytes_of(SMALL_BYTES + 1)))
    first, second = begin(room, "new"), begin(room, "new")
    for answer in (first, second):
        await answer.reserve(page=False)
    third = await waiting(begin(room, "new").reserve(page=False))
    second.taken()
    await third
    made.cancel()


async def test_many_at_once_do_not_wait_for_each_other_when_they_are_made() -> None:
    room = Outgoing()
    answers = [begin(room, "a") for _ in range(24)]
    for answer in answers:
        await answer.reserve(page=False)
    one_more = await waiting(begin(room, "a").reserve(page=False))
    for answer in answers:
        await answer.leave(bytes_of(250_000))
    for answer in answers:
        answer.taken()
    await one_more


async def test_what_waits_to_be_made_is_not_refused_for_its_number() -> None:
    room = Outgoing()
    await begin(room, "a").leave(bytes_of(PAGE_BYTES))
    reserving = [await waiting(begin(room, "a").reserve(page=True)) for _ in range(1_000)]
    for task in reserving:
        assert not task.done()
        task.cancel()
    await asyncio.wait(reserving)
    assert (room._waiting, room._held) == ({}, {})


async def test_a_call_that_ends_holds_nothing() -> None:
    room = Outgoing()
    contexts = [Context(f"peer {number}") for number in range(2)]
    answers = [room.answer("shop", context) for context in contexts]  # type: ignore[arg-type]
    await answers[0].reserve(page=True)
    await answers[1].leave(bytes_of(100))
    for context in contexts:
        context.end(context)
    assert (room._bytes, room._of_one, room._of_connection, room._untaken) == (0, {}, {}, {})


@pytest.mark.parametrize("family", ["ipv4:127.0.0.1", "ipv6:%5B::1%5D"])
def test_a_connection_is_cut_off_and_no_other(family: str) -> None:
    host = "::1" if family.startswith("ipv6") else "127.0.0.1"
    kind = socket.AF_INET6 if host == "::1" else socket.AF_INET
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server((host, 0), family=kind)) for _ in range(2)]
        (port, other_port) = (server.getsockname()[1] for server in listening)
        clients = [stack.enter_context(socket.create_connection((host, to))) for to in (port, port, other_port)]
        for server in (listening[0], *listening):
            stack.enter_context(server.accept()[0])
        assert cut_off([f"{family}:{clients[0].getsockname()[1]}", f"{family}:1"], port) == 1
        assert cut_off([f"{family}:{clients[2].getsockname()[1]}"], port) == 0
        assert clients[0].recv(1) == b""
        for client in clients[1:]:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
