"""Alerts on their way out: to the log once, to the webhook until it takes them, over restarts."""

import asyncio
import itertools
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from gateway.domain.models import AlertKind
from gateway.domain.notifications import NotifyPolicy
from gateway.domain.states import TaskStatus
from gateway.store import alerts
from gateway.sweeps.alert_webhook import AlertWebhook, AlertWebhookSweep
from gateway.sweeps.alerts import AlertSweep
from tests.gateway.callbacks.receiver import Receiver as CallbackReceiver
from tests.gateway.callbacks.receiver import receiving as receiving_callbacks
from tests.gateway.operations.book_store import BookStore
from tests.gateway.operations.person import Person, bring
from tests.gateway.operations.receiver import Receiver, receiving
from tests.gateway.support.book import Book
from tests.gateway.support.in_process import running_gateway


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def log_sweep(book: Book, *, has_webhook: bool = False) -> AlertSweep:
    return AlertSweep(BookStore(book), book.policy, 5, NotifyPolicy(), has_webhook=has_webhook)


def webhook(book: Book, receiver: Receiver) -> AlertWebhookSweep:
    return AlertWebhookSweep(BookStore(book), AlertWebhook(receiver.url), 5)


def outbox(book: Book) -> int:
    return len(book.rows("SELECT * FROM alert_deliveries"))


async def test_the_log_tells_each_alert_once_raised_and_once_cleared(
    book: Book, person: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bring(book, TaskStatus.STALE)
    sweep = log_sweep(book)
    assert await sweep.run_once() == {"raised": 1, "cleared": 0}
    assert await log_sweep(book).run_once() == {"raised": 0, "cleared": 0}, "not again after a restart"
    person.requeue()
    assert await sweep.run_once() == {"raised": 0, "cleared": 1}
    lines = [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records]
    assert lines == [
        ("WARNING", "alert=task_stale raised subject=po-1"),
        ("INFO", "alert=task_stale cleared subject=po-1"),
    ]
    assert outbox(book) == 0, "nothing is kept where nobody else has to be told"


async def test_the_webhook_gets_a_neutral_form_in_order(book: Book, person: Person, receiver: Receiver) -> None:
    bring(book, TaskStatus.STALE)
    person.requeue()
    await log_sweep(book, has_webhook=True).run_once()
    assert await webhook(book, receiver).run_once() == {"sent": 2}
    raised, cleared = receiver.bodies
    assert raised["type"] == "alert.raised"
    assert raised["data"] | {"message": "", "raised_at": ""} == {
        "alert_id": 1,
        "kind": "task_stale",
        "subject": "po-1",
        "message": "",
        "raised_at": "",
        "cleared_at": None,
    }
    assert raised["timestamp"] == raised["data"]["raised_at"]
    assert cleared["type"] == "alert.cleared"
    assert cleared["timestamp"] == cleared["data"]["cleared_at"]
    assert receiver.ids == [raised["id"], cleared["id"]] == ["alert-1", "alert-2"]
    assert outbox(book) == 0


@pytest.mark.parametrize("answer", [500, 404, 302, None])
async def test_what_is_not_taken_is_tried_again_with_the_same_id(
    book: Book, receiver: Receiver, answer: int | None
) -> None:
    receiver.answer, receiver.location = answer, "http://127.0.0.1:9/elsewhere" if answer == 302 else ""
    bring(book, TaskStatus.STALE)
    assert await webhook(book, receiver).run_once() == {"sent": 0}
    assert await webhook(book, receiver).run_once() == {"sent": 0}
    assert len(receiver.ids) == 1, "the second try is not due yet, not even in a new process"
    book.time.advance(5)
    receiver.answer = 200
    assert await webhook(book, receiver).run_once() == {"sent": 1}
    assert receiver.ids == ["alert-1", "alert-1"]
    assert receiver.bodies[0] == receiver.bodies[1]


async def test_delays_grow_to_an_hour_and_after_three_days_it_is_given_up(
    book: Book, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answer = 503
    bring(book, TaskStatus.STALE)
    sweep = webhook(book, receiver)
    times = []
    begin = book.time.wall
    while outbox(book) and book.time.wall - begin < timedelta(days=4):
        seen = len(receiver.ids)
        await sweep.run_once()
        if len(receiver.ids) > seen:
            times.append((book.time.wall - begin).total_seconds())
        due = book.rows("SELECT due_us FROM alert_deliveries")
        if due:
            book.time.advance(timedelta(microseconds=due[0]["due_us"] - book.clock.now().elapsed_us))
    gaps = [round(later - earlier) for earlier, later in itertools.pairwise(times)]
    assert gaps[:4] == [5, 10, 20, 40]
    assert max(gaps) == 3600
    assert 3 * 86_400 <= times[-1] <= 3 * 86_400 + 3600
    assert outbox(book) == 0
    assert "given up" in caplog.text
    assert "secret" not in caplog.text


async def test_a_receiver_that_is_not_there(book: Book, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    bring(book, TaskStatus.STALE)
    sweep = AlertWebhookSweep(BookStore(book), AlertWebhook("http://127.0.0.1:9/alerts?key=secret"), 5)
    assert await sweep.run_once() == {"sent": 0}
    assert "ConnectError" in caplog.text
    assert "secret" not in caplog.text
    assert outbox(book) == 1


async def test_a_running_gateway_tells_what_it_finds(tmp_path: Path, receiver: Receiver) -> None:
    settings = {"alert_webhook_url": receiver.url, "sweep_interval_seconds": 0.05}
    async with running_gateway(tmp_path, **settings) as gateway:
        await gateway.api.take()
        gateway.time.advance(301)
        async with asyncio.timeout(60):
            # Others may come first: a worker that is silent, for one.
            while "task_stale" not in [body["data"]["kind"] for body in receiver.bodies]:
                await asyncio.to_thread(receiver.got_one.wait, 1)
                receiver.got_one.clear()
    assert gateway.rows("SELECT * FROM alert_deliveries WHERE attempts > 0") == []


async def test_an_order_does_not_wait_for_what_any_number_of_workers_raise(
    book: Book, person: Person, receiver: Receiver
) -> None:
    for number in range(60):
        book.run(alerts.raise_once, AlertKind.WORKER_OFFLINE, f"w{number}", "words")
        book.run(alerts.raise_once, AlertKind.CALLBACK_GIVEN_UP, f"c{number}", "words")
    bring(book, TaskStatus.STALE)
    person.requeue()
    assert await webhook(book, receiver).run_once() == {"sent": 50}
    told = [(body["type"], body["data"]["kind"]) for body in receiver.bodies[:4]]
    assert told == [
        ("alert.raised", "task_stale"),
        ("alert.cleared", "task_stale"),
        ("alert.raised", "worker_offline"),
        ("alert.raised", "callback_given_up"),
    ]


async def test_an_order_does_not_wait_until_a_worker_s_alert_is_tried_again(book: Book, receiver: Receiver) -> None:
    book.run(alerts.raise_once, AlertKind.WORKER_OFFLINE, "w1", "words")
    receiver.answer = 500
    assert await webhook(book, receiver).run_once() == {"sent": 0}
    receiver.answer = 204
    book.run(alerts.raise_once, AlertKind.TASK_STALE, "po-1", "words")
    assert await webhook(book, receiver).run_once() == {"sent": 1}
    assert receiver.bodies[-1]["data"]["kind"] == "task_stale"


async def test_informational_answers_without_an_end_are_given_up(book: Book, caplog: pytest.LogCaptureFixture) -> None:
    book.run(alerts.raise_once, AlertKind.TASK_STALE, "po-1", "words")
    async with asyncio.timeout(60), receiving_callbacks(CallbackReceiver(informs=True)) as informing:
        sweep = AlertWebhookSweep(BookStore(book), AlertWebhook(informing.url), 5)
        assert await sweep.run_once() == {"sent": 0}
        await informing.cut_off.wait()
    assert "does not take alert 1: RemoteProtocolError" in caplog.text
    assert "open-sesame" not in caplog.text


async def test_an_answer_that_takes_too_long_in_all_is_given_up(
    book: Book, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.sweeps.alert_webhook._TOTAL_SECONDS", 0.2)
    book.run(alerts.raise_once, AlertKind.TASK_STALE, "po-1", "words")
    async with asyncio.timeout(60), receiving_callbacks(CallbackReceiver(hangs=True)) as hanging:
        assert await AlertWebhookSweep(BookStore(book), AlertWebhook(hanging.url), 5).run_once() == {"sent": 0}
    assert "does not take alert 1: no answer within 0.2 s" in caplog.text


async def test_what_is_posted_is_signed_where_a_secret_is_set(book: Book, receiver: Receiver) -> None:
    secrets = ["whsec_" + "c2VjcmV0" * 4, "whsec_" + "YW5vdGhl" * 4]
    book.run(alerts.raise_once, AlertKind.TASK_STALE, "po-1", "words 日本")
    sweep = AlertWebhookSweep(BookStore(book), AlertWebhook(receiver.url, secrets), 5)
    assert await sweep.run_once() == {"sent": 1}
    (content,), (headers,) = receiver.contents, receiver.headers
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    assert at == book.time.wall.replace(microsecond=0)
    signed = headers["webhook-signature"].split(" ")
    assert signed == [Webhook(secret).sign("alert-1", at, content.decode()) for secret in secrets]
