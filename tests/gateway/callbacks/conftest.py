"""A book whose callbacks are delivered to receivers on real sockets, step by step under a clock that a test moves."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest
import standardwebhooks.webhooks

from gateway.domain.models import Submission
from gateway.orders.submit import submit
from gateway.sweeps.callback_delivery import CallbackSweep
from gateway.sweeps.callback_sender import CallbackSender
from tests.gateway.callbacks.receiver import Receiver, receiving
from tests.gateway.operations.book_store import BookStore
from tests.gateway.operations.person import Person
from tests.gateway.support.book import UPSTREAM, Book

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
INTENT = '{"z": 1.0, "a": 12345678901234567890, "item": "\\u8336 茶"}'


@dataclass
class Courier:
    """Delivers a book's callbacks."""

    book: Book
    sweep: CallbackSweep

    async def run(self) -> None:
        """Try what is due now."""
        await self.sweep.run_once()
        await self.sweep.idle()

    def wait(self) -> timedelta | None:
        """Let time pass until the next try is due; return how long that was, None if nothing is pending."""
        due = self.book.rows("SELECT min(due_us) AS due FROM callbacks WHERE status = 'pending'")[0]["due"]
        if due is None:
            return None
        left = timedelta(microseconds=max(0, due - self.book.clock.now().elapsed_us))
        self.book.time.advance(left)
        return left

    def filed(self) -> list[dict[str, Any]]:
        return self.book.rows("SELECT * FROM callbacks ORDER BY row")

    def file(self, url: str, task_id: str = "po-1", intent_json: str = INTENT) -> None:
        """File a task that calls back."""
        self.book.run(submit, self.book.policy, Submission(task_id, "rakuten", intent_json, url), UPSTREAM)

    def cancelled(self, url: str, task_id: str = "po-1") -> None:
        """File a task and cancel it: the shortest way to a callback."""
        self.file(url, task_id)
        self.book.cancel(task_id)


@pytest.fixture
def courier(book: Book) -> Courier:
    return Courier(book, CallbackSweep(BookStore(book), CallbackSender([SECRET]), lambda: 1.0))


@pytest.fixture
def person(book: Book) -> Person:
    return Person(book)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving(Receiver()) as running:
        yield running


@pytest.fixture
def verifier(book: Book, monkeypatch: pytest.MonkeyPatch) -> standardwebhooks.webhooks.Webhook:
    """The library's own verifier, on the machine whose clock the test moves."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls.fromtimestamp(book.time.wall.timestamp(), tz)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Clock)
    return standardwebhooks.webhooks.Webhook(SECRET)
