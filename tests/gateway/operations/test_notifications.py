"""How people are told of alerts: at once, when nobody decides, by digest; through apprise on real sockets."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from common.settings import SettingsError
from gateway.domain.health import ProblemKind
from gateway.domain.models import Actor, AlertKind
from gateway.domain.notifications import MAX_DIGEST, TEST, NotifyPolicy
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.pause import resume
from gateway.operations.problems import health_with_problems
from gateway.operations.restore import mark_restored
from gateway.store import alerts
from gateway.sweeps.alerts import AlertSweep
from gateway.sweeps.notifications import NotificationSweep
from gateway.sweeps.notify_channels import AppriseChannel, open_channels
from tests.gateway.callbacks.receiver import Receiver as HangingReceiver
from tests.gateway.callbacks.receiver import receiving as receiving_callbacks
from tests.gateway.cli.command import Commands
from tests.gateway.operations.book_store import BookStore
from tests.gateway.operations.person import Person
from tests.gateway.operations.receiver import Receiver, receiving
from tests.gateway.support.book import Book, terms
from tests.gateway.support.grpc_api import connected
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import TICK
from tests.gateway.support.process import gateway_process

NOTIFY = NotifyPolicy(("json",), ("escalation-json",), public_url="https://gateway.example")


def url_of(receiver: Receiver) -> str:
    """The receiver for apprise, with a secret in its path."""
    return receiver.url.replace("http://", "json://").replace("alerts?key=secret", "the-secret?cto=60&rto=60")


@pytest.fixture
def ops() -> Iterator[Receiver]:
    """Who is told first."""
    with receiving() as made:
        yield made


@pytest.fixture
def boss() -> Iterator[Receiver]:
    """Who is told if nobody decides."""
    with receiving() as made:
        yield made


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that the program's log would get at its most talkative; caplog also hears what is kept from it."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


class Bench:
    """A book with its alerts and both channels."""

    def __init__(self, book: Book, ops: Receiver, boss: Receiver, notify: NotifyPolicy = NOTIFY) -> None:
        self.book, self.store, self.notify = book, BookStore(book), notify
        self.alerts = AlertSweep(self.store, book.policy, 5, notify, has_webhook=False)
        channels = [*open_channels([url_of(ops)], "X"), *open_channels([url_of(boss)], "X", "escalation-")]
        self.sweeps = [NotificationSweep(self.store, book.policy, notify, channel, 5) for channel in channels]

    async def run(self) -> list[int]:
        """Let the log tell what is new, then each channel what is due; return how much each has taken."""
        await self.alerts.run_once()
        return [(await sweep.run_once())["sent"] for sweep in self.sweeps]

    def filed(self) -> int:
        return len(self.book.rows("SELECT 1 FROM notifications"))


@pytest.fixture
def bench(book: Book, ops: Receiver, boss: Receiver) -> Bench:
    return Bench(book, ops, boss)


def order_in_doubt(book: Book) -> None:
    """A permit was granted, and the lease has run out."""
    lease = book.take()
    book.permit(lease, terms=terms(2_900))
    book.lapse(lease)


async def test_what_waits_for_a_decision_is_told_at_once_with_all_that_is_known(bench: Bench, ops: Receiver) -> None:
    order_in_doubt(bench.book)
    Person(bench.book).requeue()  # the lease has lapsed: this makes it stale first
    Person(bench.book).withdraw()
    assert await bench.run() == [1, 0]
    told = ops.bodies[0]
    assert told["title"] == "order-gateway: task stale, task po-1"
    for words in (
        "An order is possible: a submit permit was granted to w1",
        "Site: rakuten",
        "Amount: 2,900 yen, as the confirmation page showed it",
        "It can be resolved to failed in ",
        "https://gateway.example/console/tasks/po-1",
    ):
        assert words in told["message"], words
    assert await bench.run() == [0, 0]


async def test_the_amount_and_the_deadline_are_those_of_the_last_report(bench: Bench, ops: Receiver) -> None:
    lease = bench.book.take()
    bench.book.permit(lease, terms=terms(2_900))
    bench.book.report(
        lease, OrderState.AWAITING_PAYMENT, payable_yen=3_100, pay_deadline="2026-12-01T14:59:59.000000Z",
        site_order_id="R-1", sequence=1, terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN,
    )  # fmt: skip
    await bench.run()
    told = ops.bodies[0]["message"]
    assert "Amount: 3,100 yen\n" in told
    assert "To be paid by 2026-12-01T14:59:59.000000Z" in told
    assert "An order is certain" in told


async def test_what_waits_for_a_second_person_is_told_at_once(book: Book, ops: Receiver, boss: Receiver) -> None:
    book.policy = replace(book.policy, second_person=True)
    bench = Bench(book, ops, boss)
    book.submit(requires_approval=True, max_total_yen=500_000)
    book.run(mark_restored, "a-backup.db", Actor("gateway"), book.new_token)
    await bench.run()
    seen = len(ops.bodies)
    Person(book).approve(total=200_000, actor=Actor("mika"))
    book.run(resume, book.policy, "", "looked at all of it", Actor("mika"))
    assert await bench.run() == [2, 0]
    proposed, resumed = ops.bodies[seen:]
    assert proposed["title"] == "order-gateway: proposal waiting, task po-1"
    assert "mika proposes to approve task po-1 for at most 200,000 yen: looked at the site" in proposed["message"]
    assert "An order is possible" in proposed["message"]
    assert resumed["title"] == "order-gateway: resume proposed, dispatch"
    assert resumed["message"].endswith("https://gateway.example/console")


async def test_many_at_once_are_one_message(bench: Bench, ops: Receiver) -> None:
    for number in range(1, 6):
        bench.book.submit(f"po-{number}", requires_approval=True, max_total_yen=3_000)
    assert await bench.run() == [5, 0]
    for number in range(6, 31):
        bench.book.submit(f"po-{number}", requires_approval=True, max_total_yen=3_000)
    assert await bench.run() == [1, 0]
    told = ops.bodies[5]
    assert told["title"] == "order-gateway: 25 decisions wait"
    assert told["message"].count("approval required: ") == 20
    assert "and 5 more, see `order-gateway decisions`" in told["message"]
    assert await bench.run() == [0, 0]


async def test_what_was_decided_meanwhile_is_told_to_nobody_but_by_digest(
    bench: Bench, person: Person, ops: Receiver, boss: Receiver
) -> None:
    bench.book.submit(requires_approval=True, max_total_yen=3_000)
    await bench.alerts.run_once()
    person.approve()
    bench.book.time.advance(NOTIFY.escalate_after)
    assert await bench.run() == [0, 0]
    bench.book.time.advance(NOTIFY.digest_every)
    assert await bench.run() == [1, 0]
    assert " over: approval required:" in ops.bodies[0]["message"]
    assert not boss.bodies
    assert bench.filed() == 0


async def test_others_are_told_when_the_time_to_decide_is_up_and_not_a_tick_before(
    bench: Bench, boss: Receiver
) -> None:
    bench.book.submit(requires_approval=True, max_total_yen=3_000)
    assert await bench.run() == [1, 0]
    bench.book.time.advance(NOTIFY.escalate_after - TICK)
    assert await bench.run() == [0, 0]
    bench.book.time.advance(TICK)
    assert await bench.run() == [0, 1]
    assert boss.bodies[0]["title"] == "order-gateway: nobody has decided yet: approval required, task po-1"
    assert "Amount: up to 3,000 yen" in boss.bodies[0]["message"]


async def test_what_is_not_urgent_is_gathered_into_one_message(bench: Bench, ops: Receiver) -> None:
    book = bench.book
    for number in range(3):
        book.run(alerts.raise_once, AlertKind.CALLBACK_GIVEN_UP, f"c{number}", f"callback c{number} \x1b[2J\u202e")
        assert await bench.run() == [0, 0]
    book.time.advance(NOTIFY.digest_every - TICK)
    assert await bench.run() == [0, 0]
    book.time.advance(TICK)
    assert await bench.run() == [1, 0]
    (told,) = ops.bodies
    assert told["title"] == "order-gateway: 3 things to know, nothing urgent"
    assert all(f"callback given up: callback c{number}" in told["message"] for number in range(3))
    assert not {"\x1b", "\u202e"} & set(told["message"])
    assert told["message"].endswith("https://gateway.example/console")


async def test_a_digest_is_bounded_and_says_how_much_it_leaves_out(bench: Bench, ops: Receiver) -> None:
    for number in range(MAX_DIGEST + 100):
        bench.book.run(alerts.raise_once, AlertKind.CALLBACK_GIVEN_UP, f"c{number}", "words")
    await bench.run()
    assert bench.filed() == MAX_DIGEST
    bench.book.time.advance(NOTIFY.digest_every)
    assert await bench.run() == [1, 0]
    assert f"and {MAX_DIGEST - 20} more" in ops.bodies[0]["message"]
    assert bench.filed() == 0


async def test_a_channel_that_takes_nothing_is_tried_again_shows_and_is_given_up_in_the_end(
    bench: Bench, ops: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    book, ops.answer = bench.book, 503
    book.submit(requires_approval=True, max_total_yen=3_000)

    def failing() -> str | None:
        health = book.run(
            health_with_problems, book.policy, has_webhook=False, backup_alert=None, channels=NOTIFY.all_channels
        )
        return next((each.message for each in health.problems if each.kind is ProblemKind.NOTIFY_CHANNEL_FAILING), None)

    for delay in (5, 10, 20):
        assert failing() is None
        assert await bench.run() == [0, 0]
        assert await bench.run() == [0, 0]
        book.time.advance(delay)
    assert len(ops.bodies) == 3, "each once, when its time had come"
    told = failing()
    assert told is not None
    assert "channel json has not taken the last 3 messages: the service answered 503" in told
    ops.answer = 200
    assert await bench.run() == [1, 0]
    assert failing() is None
    ops.answer = 503
    book.submit("po-2", requires_approval=True, max_total_yen=3_000)
    await bench.run()
    book.time.advance(timedelta(days=3))
    await bench.sweeps[0].run_once()
    assert not book.rows("SELECT 1 FROM notifications WHERE channel = 'json' AND urgency = 'now'")
    assert "given up" in caplog.text
    assert "the-secret" not in caplog.text


async def test_a_channel_that_hangs_holds_up_nobody_and_gets_no_second_message() -> None:
    async with asyncio.timeout(60), receiving_callbacks(HangingReceiver(hangs=True)) as hanging:
        (opened,) = open_channels([hanging.url.replace("http://", "json://")], "X")
        channel = AppriseChannel("json", opened._target, total_seconds=0.2)
        assert await channel.send(TEST) == "no answer within 0.2 s"
        assert await channel.send(TEST) == "the message before is still under way"


async def test_a_channel_takes_the_next_message_as_soon_as_it_has_answered(ops: Receiver) -> None:
    (channel,) = open_channels([url_of(ops)], "X")
    assert [await channel.send(TEST) for _ in range(100)] == [None] * 100


async def test_a_channel_that_has_answered_late_takes_messages_again() -> None:
    class Slow:
        def __init__(self) -> None:
            self.may_go_on = threading.Event()

        def notify(self, **_message: str) -> bool:
            return self.may_go_on.wait(60)

    target = Slow()
    channel = AppriseChannel("json", target, total_seconds=0.05)
    async with asyncio.timeout(60):
        assert await channel.send(TEST) == "no answer within 0.05 s"
        target.may_go_on.set()
        while await channel.send(TEST) is not None:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("url", ["nonsense", "nothing://of-the-kind/the-secret", "slack://the-secret", "json://"])
def test_a_url_that_is_none_is_told_without_showing_it(url: str, log: io.StringIO) -> None:
    with pytest.raises(SettingsError, match="RAKUTEN_NOTIFY_URLS: URL 2 is none of a service") as refusal:
        open_channels(["json://127.0.0.1/", url], "NOTIFY_URLS")
    assert "the-secret" not in str(refusal.value) + log.getvalue()


def test_channels_are_called_by_their_schemes() -> None:
    names = [channel.name for channel in open_channels(["json://a/", "xml://a/", "JSON://b/"], "X", "escalation-")]
    assert names == ["escalation-json", "escalation-xml", "escalation-json-2"]


async def test_the_command_says_what_each_channel_made_of_a_test(
    tmp_path: Path, ops: Receiver, boss: Receiver, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    boss.answer = 403
    settings = {
        "notify_urls": url_of(ops),
        "notify_escalation_urls": url_of(boss),
        "alert_webhook_url": ops.url,
        "alert_webhook_secret": "whsec_" + "c2VjcmV0" * 4,
    }
    async with running_gateway(tmp_path, **settings) as gateway:
        commands = Commands({"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"})
        ran = await commands.run("notify", "test", "--json")
        told = {each["channel"]: (each["taken"], each["told"]) for each in ran.json["results"]}
        assert told == {
            "json": (True, ""),
            "escalation-json": (False, "the service answered 403"),
            "webhook": (True, ""),
        }
        assert ran.code == 1
        channels = {each.channel: each.failures for each in (await gateway.api.health()).notification_channels}
        assert channels == {"json": 0, "escalation-json": 1}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False) as client:
            page = (await client.get("/metrics")).text
        assert 'ordergateway_notify_channel_failures{channel="escalation-json"} 1.0' in page
        boss.answer = 204
        assert (await commands.ok("notify", "test")).out.count("yes") == 3
    assert sorted(body.get("type", "") for body in ops.bodies[:2]) == ["alert.test", "info"]
    assert log.getvalue()
    assert "the-secret" not in log.getvalue()


async def test_without_a_channel_there_is_nothing_to_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with running_gateway(tmp_path) as gateway:
        commands = Commands({"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"})
        ran = await commands.run("notify", "test")
        assert ran.code == 4
        assert "set RAKUTEN_NOTIFY_URLS or RAKUTEN_ALERT_WEBHOOK_URL" in ran.err


async def test_what_was_to_be_told_is_told_after_a_kill(tmp_path: Path, ops: Receiver) -> None:
    ops.answer = 500
    settings = {"notify_urls": url_of(ops), "sweep_interval_seconds": "0.05", "public_url": "https://gateway.example/"}
    async with asyncio.timeout(90):
        async with gateway_process(tmp_path, **settings) as running, connected(running.port) as api:
            await api.submit("po-1", requires_approval=True, max_total_yen=3_000)
            await asyncio.to_thread(ops.got_one.wait, 60)
            running.kill()
        ops.answer, seen = 200, len(ops.bodies)
        ops.got_one.clear()
        async with gateway_process(tmp_path, **settings) as running:
            await asyncio.to_thread(ops.got_one.wait, 60)
            assert "the-secret" not in running.log
    assert ops.bodies[seen]["title"] == "order-gateway: approval required, task po-1"
    assert "https://gateway.example/console/tasks/po-1" in json.dumps(ops.bodies[seen])
