"""Somebody without a lease may say any number of words: what is new is found at once, and only so much is kept."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.models import AlertKind
from gateway.domain.refusals import Refusal
from gateway.domain.states import OrderState as S
from gateway.domain.states import TaskStatus
from gateway.store import alerts
from tests.gateway.support.book import Book, refused


@pytest.fixture
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.late_reports.MAX_KEPT", 3)
    monkeypatch.setattr("gateway.orders.history.MAX_REFUSALS", 3)


@pytest.mark.usefixtures("few_are_kept")
def test_of_too_many_late_reports_of_a_token_only_what_is_new_of_the_order_is_kept(book: Book) -> None:
    lease = book.take()
    stranger = book.holder(lease, worker_id="w2", token=book.new_token(), identity="another")
    for number in range(5):
        refusal = refused(book.report(lease, S.IN_CART, holder=stranger, detail=f"words {number}"))
        assert refusal.recorded_late
        assert ("so only what it says of an order is kept" in refusal.message) is (number >= 3)
        stranger = replace(stranger, worker_id=f"w{number + 3}")
    assert [said["detail"] for said in book.details("report_refused")] == ["words 0", "words 1", "words 2"]

    said_later: list[tuple[S, dict[str, Any]]] = [
        (S.ORDERED, {}),
        (S.ORDERED, {"detail": "nothing new"}),
        (S.ORDERED, {"site_order_id": "266123-1"}),
        (S.ORDERED, {"site_order_id": "266123-1", "payable_yen": 5}),
        (S.ORDERED, {"terminal": True}),
        (S.ORDERED, {"terminal": True, "terminal_status": TaskStatus.FAILED}),
        (S.PAID, {"sequence": 7}),
    ]
    for state, facts in said_later:
        book.report(lease, state, holder=stranger, **facts)
    said = [
        (each["state"], each.get("site_order_id"), each.get("terminal_status"))
        for each in book.details("report_refused")
    ]
    assert said[3:] == [
        ("ordered", None, None),
        ("ordered", "266123-1", None),
        ("ordered", None, None),
        ("ordered", None, "failed"),
        ("paid", None, None),
    ]
    honest = replace(stranger, identity="worker")
    assert "recorded late" in refused(book.report(lease, S.IN_CART, holder=honest, detail="of another token")).message
    assert book.details("report_refused")[-1]["detail"] == "of another token"


@pytest.mark.usefixtures("few_are_kept")
def test_a_late_report_of_which_the_words_are_not_kept_alerts_all_the_same(book: Book) -> None:
    lease = book.take()
    book.lapse(lease)
    for number in range(3):
        book.report(lease, S.IN_CART, detail=f"words {number}")
    book.run(alerts.clear, AlertKind.LATE_REPORT, "po-1")
    book.report(lease, S.IN_CART, detail="words 2")
    assert ("late_report", "po-1") not in book.alerts()
    book.report(lease, S.IN_CART, detail="words 3")
    assert ("late_report", "po-1") in book.alerts()


@pytest.mark.usefixtures("few_are_kept")
def test_refusals_of_one_kind_to_one_token_are_bounded_and_the_last_one_says_so(book: Book) -> None:
    lease = book.take()
    for number in range(5):
        assert isinstance(book.renew(lease, worker_id=f"w{number + 2}", identity="another"), Refusal)
    assert isinstance(book.renew(lease, worker_id="w9"), Refusal)
    told = [(said["by"]) for said in book.details("renew_refused")]
    assert told == ["w2", "w3", "w4", "w9"]
    reasons = [
        row["reason"] for row in book.rows("SELECT reason FROM events WHERE kind = 'renew_refused' ORDER BY sequence")
    ]
    ends = ["further ones of another are not written down" in reason for reason in reasons]
    assert ends == [False, False, True, False]


@pytest.mark.sqlite
def test_what_is_new_is_asked_of_indexes(book: Book) -> None:
    """Steps of the database's machine, not time: the same however long a task's history and its late reports are."""
    lease = book.take()

    def steps(who: str) -> int:
        """What one late report and one refused renewal of a token that is heard for the first time take."""
        stranger = book.holder(lease, worker_id=who, token=book.new_token(), identity=who)
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        book.connection.set_progress_handler(step, 1)
        try:
            book.report(lease, S.IN_CART, holder=stranger, detail="words")
            book.renew(lease, worker_id=who, identity=who)
        finally:
            book.connection.set_progress_handler(None, 0)
        return count

    at_first = steps("first")
    for number in range(60):
        steps(f"more-{number}")
    assert steps("last") < 1.2 * at_first
