"""The database itself keeps a row a target: its oldest queued task, the one in execution, and how many queries wait."""

from dataclasses import replace

from gateway.account_queries.lease import give_back_query, open_query_lease
from gateway.account_queries.submit import submit_query
from gateway.domain.account_queries import QueryKind, QueryLeaseRequest, QuerySubmission
from gateway.domain.models import LeaseScope
from gateway.orders.expire import expire_due
from gateway.store import catalog
from tests.gateway.account_queries.test_rules import POLICY as QUERY_POLICY
from tests.gateway.store.conformance.conftest import StoreBook


def lanes(book: StoreBook) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    """By target: the id of the oldest queued task and of the one in execution."""
    ids = {row["row"]: row["task_id"] for row in book.engine.execute("SELECT row, task_id FROM tasks")}
    found = book.engine.execute("SELECT site, account, head_row, active_row FROM lanes")
    return {(row["site"], row["account"]): (ids.get(row["head_row"]), ids.get(row["active_row"])) for row in found}


def queued(book: StoreBook) -> dict[str, int]:
    return {row["account"]: row["queued"] for row in book.engine.execute("SELECT account, queued FROM query_lanes")}


def test_a_lane_is_kept_through_every_way_a_task_moves(book: StoreBook) -> None:
    book.policy = replace(book.policy, scope=LeaseScope.ACCOUNT)
    a = ("rakuten", "a")
    for task_id in ("po-1", "po-2", "po-3"):
        book.submit(task_id, account="a")
    book.submit("other", account="b")
    assert lanes(book) == {a: ("po-1", None), ("rakuten", "b"): ("other", None)}
    request = book.request("w1", sites=("rakuten",), accounts=("a",))
    first = book.open(request)
    assert first is not None
    assert lanes(book)[a] == ("po-2", "po-1")
    assert book.undo(first)
    assert lanes(book)[a] == ("po-1", None)
    lease = book.take("po-1", request=request)
    book.report(lease)
    assert lanes(book)[a] == ("po-2", "po-1")
    book.report(lease, terminal=True)
    assert lanes(book)[a] == ("po-2", None)
    book.cancel("po-2")
    assert lanes(book)[a] == ("po-3", None)
    book.take("po-3", request=request)
    assert lanes(book)[a] == (None, "po-3")
    book.time.advance(book.policy.lease_ttl)
    book.run(expire_due)
    assert lanes(book) == {a: (None, None), ("rakuten", "b"): ("other", None)}


def test_the_next_is_the_oldest_whether_the_permit_judges_a_condition_or_not(book: StoreBook) -> None:
    target = ("rakuten", "")
    for task_id, cap in (("po-1", 100), ("po-2", None), ("po-3", 100), ("po-4", None)):
        book.submit(task_id, max_total_yen=cap)
    for task_id, then in (("po-1", "po-2"), ("po-2", "po-3"), ("po-3", "po-4"), ("po-4", None)):
        lease = book.take(task_id)
        assert lanes(book)[target] == (then, task_id)
        book.report(lease, terminal=True)


def test_the_queries_that_wait_are_counted_by_target(book: StoreBook) -> None:
    for number, account in enumerate(("a", "a", "")):
        wanted = QuerySubmission(f"aq-{number}", "sandbox", QueryKind.ORDER_LIST, "{}", account=account)
        book.run(submit_query, QUERY_POLICY, wanted, "upstream")
    assert queued(book) == {"": 1, "a": 2}
    request = QueryLeaseRequest("w1", None, ("sandbox",), accounts=("a",))
    lease = book.run(open_query_lease, QUERY_POLICY, request)
    assert lease is not None
    assert queued(book) == {"": 1, "a": 1}
    book.run(give_back_query, lease.query_id, lease.attempt)
    assert queued(book) == {"": 1, "a": 2}


def test_the_catalogue_knows_each_target_that_was_ever_named(book: StoreBook) -> None:
    book.submit(account="a")
    book.run(
        submit_query,
        QUERY_POLICY,
        QuerySubmission("aq-1", "rakuten", QueryKind.ORDER_LIST, "{}", account="b"),
        "upstream",
    )
    book.open(book.request("w1", sites=("rakuten",), accounts=("c", "d")))
    due = book.run(lambda tx, _: catalog.targets_due(tx, "rakuten", 0, -1, 10))
    assert sorted(target.account for target in due) == ["a", "b", "c", "d"]
