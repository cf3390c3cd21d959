"""What an order may cost (docs/specification.md#terms), at the yen, and what is kept of the terms."""

from dataclasses import replace

import pytest

from gateway.domain.leases import Permit
from gateway.domain.refusals import Reason
from gateway.domain.states import Placement
from tests.gateway.support.book import Book, reason, refused, terms


def with_gateway_cap(book: Book, yen: int) -> None:
    book.policy = replace(book.policy, permit_max_yen=yen)


def granted(outcome: object) -> Permit:
    assert isinstance(outcome, Permit), outcome
    return outcome


def test_an_order_at_its_cap_is_permitted_and_one_yen_more_is_not(book: Book) -> None:
    book.submit(max_total_yen=3_000)
    lease = book.take()
    refusal = refused(book.permit(lease, terms=terms(3_001)))
    assert refusal.reason is Reason.TERMS_OVER_CAP
    assert "3001 yen to pay are more than the task's cap of 3000 yen" in refusal.message
    assert book.task().placement is Placement.IMPOSSIBLE
    granted(book.permit(lease, terms=terms(3_000)))


@pytest.mark.parametrize(("of_task", "of_gateway"), [(None, 3_000), (3_000, 9_000), (9_000, 3_000), (3_000, 3_000)])
def test_the_lower_of_both_caps_counts(book: Book, of_task: int | None, of_gateway: int) -> None:
    with_gateway_cap(book, of_gateway)
    book.submit(max_total_yen=of_task)
    lease = book.take()
    assert reason(book.permit(lease, terms=terms(3_001))) is Reason.TERMS_OVER_CAP
    granted(book.permit(lease, terms=terms(3_000)))


def test_a_worker_that_shows_no_terms_gets_no_permit_under_a_cap_of_the_task(book: Book) -> None:
    book.submit(max_total_yen=3_000)
    refusal = refused(book.permit(book.take()))
    assert refusal.reason is Reason.PERMIT_TERMS_REQUIRED
    assert "update it" in refusal.message
    assert book.task().placement is Placement.IMPOSSIBLE


def test_a_worker_that_shows_no_terms_gets_no_permit_under_a_cap_of_the_gateway(book: Book) -> None:
    with_gateway_cap(book, 3_000)
    assert reason(book.permit(book.take())) is Reason.PERMIT_TERMS_REQUIRED


def test_without_a_cap_nobody_has_to_show_terms_and_any_are_good(book: Book) -> None:
    first = book.take("po-1")
    granted(book.permit(first))
    assert book.task().terms is None
    book.report(first, terminal=True, sequence=1)
    granted(book.permit(book.take("po-2"), terms=terms(2**53 - 1)))


def test_the_same_terms_get_the_same_permit_again_and_others_none(book: Book) -> None:
    lease = book.take()
    first = granted(book.permit(lease, terms=terms(3_000)))
    assert granted(book.permit(lease, terms=terms(3_000))).permitted_at == first.permitted_at
    for other in (terms(2_999), terms(3_000, unit_price_yen=None), terms(3_000, "https://shop.example/x/"), None):
        assert reason(book.permit(lease, terms=other)) is Reason.PERMIT_TERMS_CHANGED
    assert book.task().terms == terms(3_000)


def test_terms_are_kept_with_the_permit_and_shown(book: Book) -> None:
    lease = book.take()
    granted(book.permit(lease, terms=terms(3_000)))
    assert book.task().terms == terms(3_000)
    (kept,) = book.rows("SELECT permit_payable_yen, permit_terms_json FROM leases")
    assert kept["permit_payable_yen"] == 3_000
    assert "shop.example" in kept["permit_terms_json"]
    assert book.details("permit")[0]["terms"] == {"payable_yen": 3_000, "items": 1, "digest": terms(3_000).digest}


def test_terms_of_a_refused_request_are_shown_until_some_are_permitted(book: Book) -> None:
    book.submit(max_total_yen=3_000)
    lease = book.take()
    book.permit(lease, terms=terms(4_000))
    assert book.task().terms == terms(4_000)
    assert book.details("permit_refused")[0]["terms"]["payable_yen"] == 4_000
    book.permit(lease, terms=terms(2_000))
    assert book.task().terms == terms(2_000)
    again = book.retake(lease)
    book.permit(again, terms=terms(5_000))
    assert book.task().terms == terms(2_000), "what may have been bought is shown"


def test_a_cap_is_judged_before_a_pause_so_that_nobody_waits_in_vain(book: Book) -> None:
    book.submit(max_total_yen=3_000)
    lease = book.take()
    book.pause()
    assert reason(book.permit(lease, terms=terms(3_001))) is Reason.TERMS_OVER_CAP
    assert reason(book.permit(lease, terms=terms(3_000))) is Reason.DISPATCH_PAUSED


def test_a_repeat_that_names_another_cap_changes_nothing(book: Book) -> None:
    book.submit(max_total_yen=3_000)
    assert book.submit(max_total_yen=3_000).differs == ()
    assert book.submit(max_total_yen=9_000).differs == ("max_total_yen",)
    assert book.submit().differs == ("max_total_yen",)
    assert book.task().max_total_yen == 3_000
