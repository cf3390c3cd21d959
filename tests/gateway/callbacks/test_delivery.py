"""How callbacks are delivered: receivers that are down, hang, fail, redirect, lose the answer."""

import asyncio
import logging
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from gateway.callbacks.manage import replay
from gateway.domain.callbacks import Delivery, is_signing_secret
from gateway.domain.models import Actor
from gateway.sweeps import callback_sender
from gateway.sweeps.callback_delivery import MAX_ENDPOINTS, CallbackSweep
from gateway.sweeps.callback_sender import CallbackSender, SendResult
from tests.gateway.callbacks.conftest import SECRET, Courier
from tests.gateway.callbacks.receiver import Receiver, receiving
from tests.gateway.operations.book_store import BookStore
from tests.gateway.support.book import Book

OTHER_SECRET = "whsec_" + "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def status(courier: Courier) -> list[str]:
    return [row["status"] for row in courier.filed()]


async def test_a_callback_is_signed_so_that_the_library_verifies_it(
    courier: Courier, receiver: Receiver, verifier: Webhook
) -> None:
    courier.cancelled(receiver.url)
    await courier.run()
    (request,) = receiver.received
    assert verifier.verify(request.body, request.headers) == request.json
    assert request.path == "/orders?key=open-sesame"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.json["type"] == "order.failed"
    assert status(courier) == ["delivered"]
    with pytest.raises(WebhookVerificationError):
        verifier.verify(request.body + b" ", request.headers)
    await courier.run()
    assert len(receiver.received) == 1, "delivered once"


async def test_two_secrets_give_two_signatures(book: Book, receiver: Receiver, verifier: Webhook) -> None:
    courier = Courier(book, CallbackSweep(BookStore(book), CallbackSender([OTHER_SECRET, SECRET])))
    courier.cancelled(receiver.url)
    await courier.run()
    (request,) = receiver.received
    for webhook in (verifier, Webhook(OTHER_SECRET)):
        webhook.verify(request.body, request.headers)


async def test_without_a_secret_it_is_not_signed_but_has_its_id(book: Book, receiver: Receiver) -> None:
    courier = Courier(book, CallbackSweep(BookStore(book), CallbackSender()))
    courier.cancelled(receiver.url)
    await courier.run()
    (request,) = receiver.received
    assert "webhook-signature" not in request.headers
    assert request.id == courier.filed()[0]["callback_id"]
    assert request.headers["webhook-timestamp"] == str(int(book.time.wall.timestamp()))


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"answer": 500}, "the receiver answered 500"),
        ({"answer": 404}, "the receiver answered 404"),
        ({"answer": 302, "location": "http://127.0.0.1:9/"}, "the receiver answered 302, redirects are not followed"),
        ({"answer": None}, "no answer: RemoteProtocolError"),
    ],
)
async def test_what_is_not_taken_is_tried_again_with_the_same_id_and_body(
    courier: Courier,
    receiver: Receiver,
    verifier: Webhook,
    behaviour: dict[str, object],
    told: str,
) -> None:
    for name, value in behaviour.items():
        setattr(receiver, name, value)
    courier.cancelled(receiver.url)
    for _ in range(3):
        await courier.run()
        assert courier.filed()[0]["last_result"] == told
        await courier.run()
        courier.wait()
    assert len(receiver.received) == 3, "each try at its time, and none in between"
    receiver.answer = 200
    await courier.run()
    assert len(set(receiver.ids)) == 1
    assert len({request.body for request in receiver.received}) == 1
    for request in receiver.received[-1:]:
        verifier.verify(request.body, request.headers)
    row = courier.filed()[0]
    assert (row["status"], row["attempts"], row["last_result"]) == ("delivered", 4, "the receiver answered 200")


async def test_a_receiver_that_hangs_is_given_up_and_tried_again(
    courier: Courier, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.hangs = True
    courier.cancelled(receiver.url)
    with monkeypatch.context() as impatient:
        impatient.setattr(callback_sender, "TOTAL_SECONDS", 1.0)
        await courier.run()
    assert courier.filed()[0]["last_result"] == "no answer within 1 s"
    receiver.hangs = False
    courier.wait()
    await courier.run()
    assert receiver.ids == [courier.filed()[0]["callback_id"]] * 2
    assert status(courier) == ["delivered"]


async def test_a_receiver_that_is_down_for_hours(courier: Courier, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver()
    async with receiving(receiver):
        port = receiver.port
    courier.cancelled(receiver.url)
    begin = courier.book.time.wall
    while courier.book.time.wall - begin < timedelta(hours=5):
        await courier.run()
        courier.wait()
    assert courier.filed()[0]["last_result"] == "no answer: ConnectError"
    async with receiving(receiver, port=port):
        await courier.run()
    assert receiver.ids == [courier.filed()[0]["callback_id"]]
    assert courier.filed()[0]["status"] == "delivered"
    assert 10 < courier.filed()[0]["attempts"] < 20
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1, "told once, not at each try"
    assert "open-sesame" not in caplog.text


async def test_after_three_days_it_is_given_up_and_alerts_and_a_replay_delivers_it(
    courier: Courier, receiver: Receiver
) -> None:
    receiver.answer = 503
    courier.cancelled(receiver.url)
    await courier.run()
    gaps, begin = [], courier.book.time.wall
    while (gap := courier.wait()) is not None:
        gaps.append(gap.total_seconds())
        assert courier.book.time.wall - begin < timedelta(days=4), "it never ends"
        await courier.run()
    assert gaps[:4] == [5, 5, 10, 20]
    assert max(gaps) == 3600
    assert timedelta(days=3) <= courier.book.time.wall - begin <= timedelta(days=3, hours=1)
    (row,) = courier.filed()
    assert row["status"] == "given_up"
    callback_id = row["callback_id"]
    assert courier.book.alerts() == {("callback_given_up", callback_id)}
    assert "callback_given_up" in courier.book.events()
    tries = len(receiver.received)
    courier.book.time.advance(timedelta(days=1))
    await courier.run()
    assert len(receiver.received) == tries

    receiver.answer = 204
    courier.book.run(replay, callback_id, Actor("operator"))
    await courier.run()
    assert courier.book.alerts() == set(), "cleared by the delivery"
    assert set(receiver.ids) == {callback_id}
    assert status(courier) == ["delivered"]


async def test_what_is_refused_by_its_address_is_given_up_at_once(courier: Courier) -> None:
    """A task of an older gateway may still name such an address; a name may lead to one."""
    courier.cancelled("http://[64:ff9b::169.254.169.254]/x")
    await courier.run()
    (row,) = courier.filed()
    assert (row["status"], row["attempts"]) == ("given_up", 1)
    assert row["last_result"] == "not sent: can never be called: the host has a link-local address"
    assert courier.book.alerts() == {("callback_given_up", row["callback_id"])}
    (alert,) = courier.book.rows("SELECT message FROM alerts")
    assert alert["message"].endswith(
        "was given up at once: not sent: can never be called: the host has a link-local address"
    )


async def test_an_endpoint_that_hangs_delays_no_other(courier: Courier, receiver: Receiver) -> None:
    async with receiving(Receiver(hangs=True)) as hanging:
        for number in range(50):
            courier.cancelled(hanging.url, f"hang-{number}")
        for number in range(5):
            courier.cancelled(receiver.url, f"good-{number}")
        await courier.sweep.run_once()
        await hanging.comes(1)
        await receiver.comes(5)
        courier.cancelled(receiver.url, "good-later")
        async with asyncio.timeout(60):
            while status(courier).count("delivered") < 6:
                await courier.sweep.run_once()
                await asyncio.sleep(0.01)
        assert len(hanging.received) == 1, "one connection, however much waits for it"
        await courier.sweep.close()


async def test_no_more_than_so_many_endpoints_at_once(book: Book) -> None:
    release, full, under_way, most = asyncio.Event(), asyncio.Event(), 0, 0

    class Sender(CallbackSender):
        async def send(self, delivery: Delivery) -> SendResult:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if under_way == MAX_ENDPOINTS:
                full.set()
            await release.wait()
            under_way -= 1
            return SendResult(taken=True, told="so it is")

    courier = Courier(book, CallbackSweep(BookStore(book), Sender()))
    for number in range(MAX_ENDPOINTS + 8):
        courier.cancelled(f"http://receiver-{number}/", f"po-{number}")
    await courier.sweep.run_once()
    await courier.sweep.run_once()
    async with asyncio.timeout(60):
        await full.wait()
    release.set()
    await courier.run()
    await courier.run()
    assert most == MAX_ENDPOINTS
    assert set(status(courier)) == {"delivered"}


async def test_an_endless_answer_is_not_read(courier: Courier, receiver: Receiver) -> None:
    receiver.answer, receiver.endless = 200, True
    courier.cancelled(receiver.url)
    async with asyncio.timeout(60):
        await courier.run()
        await receiver.cut_off.wait()
    assert status(courier) == ["delivered"]


async def test_informational_answers_without_an_end_are_given_up(courier: Courier, receiver: Receiver) -> None:
    receiver.informs = True
    courier.cancelled(receiver.url)
    async with asyncio.timeout(60):
        await courier.run()
        await receiver.cut_off.wait()
    assert [row["last_result"] for row in courier.filed()] == ["no answer: RemoteProtocolError"]


@pytest.mark.parametrize(
    ("secret", "good"),
    [
        (SECRET, True),
        (SECRET.removeprefix("whsec_"), True),
        ("whsec_" + "A" * 86 + "==", True),
        ("whsec_" + "A" * 90, False),
        ("whsec_c2hvcnQ=", False),
        ("my very own secret, not Base64", False),
        ("", False),
    ],
)
def test_the_form_of_a_secret(secret: str, good: bool) -> None:
    assert is_signing_secret(secret) is good
    if good:
        Webhook(secret)
