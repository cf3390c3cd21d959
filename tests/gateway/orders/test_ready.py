"""For which targets an order can be leased: the same answer one by one and by lanes, whatever the scope."""

from dataclasses import replace
from pathlib import Path

import pytest

import gateway.orders.ready
from common.target import Target
from gateway.domain.instant import Instant
from gateway.domain.leases import Lease
from gateway.domain.models import LeaseScope
from gateway.orders.lease import open_lease
from gateway.orders.ready import ready_targets
from gateway.store.port import Transaction
from tests.gateway.support.book import POLICY, Book
from tests.gateway.support.manual_time import ManualTime

TARGETS = [Target(site, account) for site in ("rakuten", "sandbox") for account in ("", "a", "b")]


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("scope", LeaseScope)
def test_targets_are_ready_as_their_oldest_orders_came(
    tmp_path: Path, time: ManualTime, scope: LeaseScope, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.orders.ready, "FEW_TARGETS", few)
    monkeypatch.setattr("gateway.store.lanes._PAGE", 1)
    with Book(tmp_path / "ready.db", time, replace(POLICY, scope=scope)) as book:

        def ready(*wanted: Target) -> list[str]:
            return book.run(lambda tx, now: [*map(str, ready_targets(tx, now, book.policy, wanted or TARGETS))])

        assert ready() == []
        filed = (("sandbox", "b"), ("rakuten", "a"), ("sandbox", ""), ("rakuten", "a"))
        for number, (site, account) in enumerate(filed):
            book.submit(f"po-{number}", site, account=account)
        assert ready() == ["sandbox/b", "rakuten/a", "sandbox"]
        assert ready(Target("sandbox"), Target("rakuten", "b")) == ["sandbox"]
        book.pause("sandbox")
        assert ready() == ["rakuten/a"]
        book.resume("sandbox")
        lease = book.take("po-0", request=book.request(sites=("sandbox",), accounts=("b",)))
        kept = {LeaseScope.GLOBAL: [], LeaseScope.SITE: ["rakuten/a"], LeaseScope.ACCOUNT: ["rakuten/a", "sandbox"]}
        assert ready() == kept[scope]
        book.lapse(lease)
        assert ready() == ["rakuten/a", "sandbox"]
        book.pause()
        assert ready() == []


@pytest.mark.parametrize("few", [0, 64])
def test_a_slot_that_is_taken_on_the_way_is_not_ready_any_more(
    tmp_path: Path, time: ManualTime, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.orders.ready, "FEW_TARGETS", few)
    with Book(tmp_path / "ready.db", time, replace(POLICY, scope=LeaseScope.SITE)) as book:
        for number, (site, account) in enumerate((("rakuten", "a"), ("rakuten", "b"), ("sandbox", "a"))):
            book.submit(f"po-{number}", site, account=account)
        found: list[str] = []

        def lease_to_each(tx: Transaction, now: Instant) -> None:
            for target in ready_targets(tx, now, book.policy, TARGETS):
                found.append(str(target))
                session = f"session-number-{len(found):04}"
                request = book.request(session=session, sites=(target.site,), accounts=(target.account,))
                assert isinstance(open_lease(tx, now, book.policy, request, book.new_token()), Lease)

        book.run(lease_to_each)
        assert found == ["rakuten/a", "sandbox/a"]
