"""The table of bad input: every method of orders, what is wrong with a request, and the refusal that names it."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import order_leases_pb2, orders_pb2

from common.terms_digest import terms_digest

KEY = "must be 1 to 128 characters of A-Z a-z 0-9 . _ -"
ACCOUNT = "must be 1 to 64 characters of A-Z a-z 0-9 . _ -"
OPAQUE = "must be 16 to 64 characters"
TOKEN = "must be the 43 characters that the lease brought"
EVIDENCE = "must be a relative path of names"
Verdict = order_leases_pb2.Verification


@dataclass
class Case:
    """Fields that make a good request bad, the field that must be named, and what must be said of it."""

    fields: dict[str, Any]
    field: str
    says: str


def keys(field: str) -> list[Case]:
    """What no task_id and no worker_id may be."""
    bad = ("-a", ".a", "_a", "a b", "a/b", "a\n", "é", "a" * 129, "../a", "a%2f")
    return [Case({field: ""}, field, "is required"), *(Case({field: value}, field, KEY) for value in bad)]


def opaque(field: str) -> list[Case]:
    return [Case({field: value}, field, OPAQUE) for value in ("", "a" * 15, "a" * 65, "a" * 15 + ".", "a" * 16 + "\n")]


BAD_ACCOUNTS = ("-a", ".a", "a b", "a/b", "a\n", "é", "a" * 65, "a\0")


def account() -> list[Case]:
    return [Case({"account": value}, "account", ACCOUNT) for value in BAD_ACCOUNTS]


def accounts() -> list[Case]:
    return [
        *(Case({"accounts": ["a", value]}, "accounts", ACCOUNT) for value in BAD_ACCOUNTS),
        Case({"accounts": ["a"] * 65}, "accounts", "must name at most 64 accounts"),
    ]


def holder() -> list[Case]:
    tokens = ("", "a" * 42, "a" * 44, "a" * 42 + "=", "é" * 43)
    return [
        *keys("task_id"),
        *keys("worker_id"),
        *(Case({"lease_token": value}, "lease_token", TOKEN) for value in tokens),
    ]


def evidence(path: str = "evidence_ref") -> list[tuple[str, str, str]]:
    return [
        ("/etc/passwd", path, EVIDENCE),
        ("../up", path, EVIDENCE),
        ("a//b", path, EVIDENCE),
        ("a/", path, EVIDENCE),
        ("a/.b", path, EVIDENCE),
        ("a\\b", path, EVIDENCE),
        ("a" * 301, path, "longer than 300 characters"),
    ]


def look(**fields: Any) -> dict[str, Any]:
    good: dict[str, Any] = {
        "verdict": Verdict.VERDICT_NOT_ORDERED,
        "window_fully_covered": True,
        "evidence_ref": "a/b",
        "begun_at_lease_age": Duration(),
    }
    return {"verification": Verdict(**(good | fields))}


def on_terms(**fields: Any) -> dict[str, Any]:
    """Terms of one good item, but for these fields; the digest is that of what is sent."""
    item: dict[str, Any] = {"item_url": "https://shop.example/a/", "quantity": 1, "unit_price_yen": 100}
    message = orders_pb2.Terms(**({"payable_yen": 100, "items": [item]} | fields))
    if not message.digest:
        lines = [(one.item_url, one.variant_id, one.quantity, one.unit_price_yen) for one in message.items]
        message.digest = terms_digest(message.payable_yen, lines)
    return {"terms": message}


def on_item(**fields: Any) -> dict[str, Any]:
    return on_terms(items=[{"item_url": "https://shop.example/a/", "quantity": 1, "unit_price_yen": 100} | fields])


GOOD: dict[str, Message] = {
    "SubmitOrder": orders_pb2.SubmitOrderRequest(task_id="po-9", site="rakuten", intent_json="{}"),
    "SubmitOrders": orders_pb2.SubmitOrdersRequest(
        orders=[orders_pb2.SubmitOrderRequest(task_id="po-9", site="rakuten", intent_json="{}")]
    ),
    "GetOrder": orders_pb2.GetOrderRequest(task_id="po-1"),
    "ListOrders": orders_pb2.ListOrdersRequest(),
    "WatchOrder": orders_pb2.WatchOrderRequest(task_id="po-1"),
    "CancelOrder": orders_pb2.CancelOrderRequest(task_id="po-1", reason="not wanted"),
    "LeaseOrders": order_leases_pb2.LeaseOrdersRequest(
        worker_id="w1", session_id="s" * 16, journal_id="j" * 16, sites=["rakuten"], wait=Duration()
    ),
    "RenewLease": order_leases_pb2.RenewLeaseRequest(task_id="po-1", worker_id="w1", lease_token="t" * 43),
    "ReportOrder": order_leases_pb2.ReportOrderRequest(
        task_id="po-1", worker_id="w1", lease_token="t" * 43, sequence=1, state=orders_pb2.ORDER_STATE_CREATED
    ),
    "RequestSubmitPermit": order_leases_pb2.RequestSubmitPermitRequest(
        task_id="po-1", worker_id="w1", lease_token="t" * 43, journal_id="j" * 16
    ),
    "ReclaimOrder": order_leases_pb2.ReclaimOrderRequest(
        task_id="po-1", worker_id="w1", session_id="s" * 16, journal_id="j" * 16
    ),
}
"""A request of each method that is refused for no field."""

CASES: dict[str, list[Case]] = {
    "SubmitOrder": [
        *keys("task_id")[1:],
        Case({"task_id": "lease"}, "task_id", "reserved words discovery, lease"),
        Case({"task_id": "discovery"}, "task_id", "reserved words"),
        Case({"site": ""}, "site", "one of the configured sites rakuten, sandbox"),
        Case({"site": "amazon"}, "site", "one of the configured sites"),
        *account(),
        Case({"labels": {str(number): "" for number in range(17)}}, "labels", "must be at most 16 labels"),
        *(
            Case({"labels": {key: ""}}, "labels", "must have keys of 1 to 64 characters")
            for key in ("", "a b", "é", "a" * 65, "a\n", "a\0", "a=b")
        ),
        Case({"labels": {"a": "é" * 257}}, "labels", "has 257 characters under a, the limit is 256"),
        Case({"labels": {"a": "b\0"}}, "labels", "must not hold the character NUL"),
        Case({"intent_json": ""}, "intent_json", "is required"),
        Case({"intent_json": "[]"}, "intent_json", "must be a JSON object"),
        Case({"intent_json": "{"}, "intent_json", "is not JSON"),
        Case({"intent_json": '{"a": NaN}'}, "intent_json", "NaN"),
        Case({"intent_json": '{"a": 1, "a": 2}'}, "intent_json", "twice"),
        Case({"intent_json": '{"a": "' + "x" * 262_137 + '"}'}, "intent_json", "is 262146 bytes, the limit is 262144"),
        *(
            Case({"callback_url": url}, "callback_url", "must be an absolute http or https URL")
            for url in (
                "",
                "/relative",
                "ftp://host/",
                "http://",
                "https://host:99999/",
                "http://host/a b",
                "http://é/",
            )
        ),
        Case({"callback_url": "https://host/" + "a" * 2_000}, "callback_url", "longer than 2000 characters"),
        *(
            Case({"max_total_yen": yen}, "max_total_yen", "from 1 to 9,007,199,254,740,991")
            for yen in (0, -1, 2**53, 2**63 - 1)
        ),
        Case({"not_before": Timestamp(seconds=2**60)}, "not_before", "between the years 1 and 9999"),
        Case({"not_after": Timestamp(seconds=-(2**60))}, "not_after", "between the years 1 and 9999"),
        Case(
            {"not_before": Timestamp(seconds=2), "not_after": Timestamp(seconds=1)},
            "not_after",
            "must not be before not_before",
        ),
    ],
    "SubmitOrders": [
        Case({"orders": []}, "orders", "must hold 1 to 500 of them in one request"),
        Case(
            {"orders": [orders_pb2.SubmitOrderRequest()] * 501}, "orders", "must hold 1 to 500 of them in one request"
        ),
    ],
    "GetOrder": keys("task_id"),
    "WatchOrder": keys("task_id"),
    "CancelOrder": [
        *keys("task_id"),
        Case({"reason": ""}, "reason", "is required, 1 to 1,000 characters"),
        Case({"reason": " \t"}, "reason", "is required"),
        Case({"reason": "a" * 1_001}, "reason", "has 1,001 characters, the limit is 1,000"),
        Case({"reason": "a\0"}, "reason", "NUL"),
    ],
    "ListOrders": [
        Case({"status": 99}, "status", "is 99, which is no status"),
        Case({"status": -1}, "status", "is -1"),
        Case({"site": "amazon"}, "site", "one of the configured sites"),
        *account(),
        *(
            Case(fields, f"filter.{field}", says)
            for fields, field, says in (
                ({"filter": {"statuses": [99]}}, "statuses", "is 99, which is no status"),
                ({"filter": {"statuses": [0]}}, "statuses", "must not hold the unspecified status"),
                ({"filter": {"statuses": [1]}, "status": 1}, "statuses", "must not be set beside status"),
                ({"filter": {"site": "amazon"}}, "site", "one of the configured sites"),
                ({"filter": {"site": "rakuten"}, "site": "rakuten"}, "site", "must not be set beside site"),
                ({"filter": {"account": "a b"}}, "account", ACCOUNT),
                ({"filter": {"account": "a"}, "account": "a"}, "account", "must not be set beside account"),
                ({"filter": {"labels": {"a b": ""}}}, "labels", "must have keys of 1 to 64 characters"),
                ({"filter": {"labels": {str(n): "" for n in range(17)}}}, "labels", "must be at most 16 labels"),
                ({"filter": {"site_order_id": "\t"}}, "site_order_id", "must be 1 to 128 printable characters"),
                (
                    {"filter": {"created_from": Timestamp(seconds=2**40)}},
                    "created_from",
                    "between the years 1 and 9999",
                ),
                ({"filter": {"updated_to": Timestamp(nanos=-1)}}, "updated_to", "between the years 1 and 9999"),
                ({"filter": {"task_id_prefix": "é"}}, "task_id_prefix", "must be up to 128 characters"),
                ({"filter": {"task_id_contains": "a" * 129}}, "task_id_contains", "must be up to 128 characters"),
                ({"filter": {"order": 99}}, "order", "is 99, which is no order of a list"),
            )
        ),
        Case({"page_size": -1}, "page_size", "from 1 to 200"),
        Case({"page_size": 201}, "page_size", "from 1 to 200"),
        *(
            Case({"page_token": token}, "page_token", "must be next_page_token of a page with the same filters")
            for token in (
                "x",
                "é",
                "bnVsbA==",
                "W10=",
                "WzBd",
                "Wy0xXQ==",
                "WzEsIiIsIiIsIiJd",
                "WzEsInF1ZXVlZCIsIiJd",
                "W3RydWUsIiIsIiJd",
                "WzEuNSwiIiwiIl0=",
                "WyIxIiwiIiwiIl0=",
                "e30=",
                "=" * 10_000,
                "WzE" * 3_000,
            )
        ),
    ],
    "LeaseOrders": [
        *keys("worker_id"),
        *opaque("session_id"),
        *opaque("journal_id"),
        Case({"sites": []}, "sites", "must name 1 to 16 sites"),
        Case({"sites": ["rakuten"] * 17}, "sites", "must name 1 to 16 sites"),
        Case({"sites": ["rakuten", "amazon"]}, "sites", "one of the configured sites"),
        *accounts(),
        Case({"wait": Duration(seconds=-1)}, "wait", "must not be negative"),
        Case({"wait": Duration(nanos=-1)}, "wait", "must not be negative"),
        Case({"wait": Duration(seconds=2**62)}, "wait", "is no valid duration"),
        Case({"wait": Duration(seconds=1, nanos=-1)}, "wait", "is no valid duration"),
        Case({"wait": Duration(nanos=2_000_000_000)}, "wait", "is no valid duration"),
        Case({"stream_number": -1}, "stream_number", "must be a whole number of at least 1, or 0"),
    ],
    "RenewLease": holder(),
    "ReportOrder": [
        *holder(),
        Case({"sequence": 0}, "sequence", "at least 1"),
        Case({"sequence": -5}, "sequence", "at least 1"),
        Case({"state": 0}, "state", "is required"),
        Case({"state": 99}, "state", "is 99, which is no order state"),
        Case({"payable_yen": -1}, "payable_yen", "from 0 to 9,007,199,254,740,991"),
        Case({"payable_yen": 2**53}, "payable_yen", "from 0 to"),
        Case({"pay_deadline": Timestamp(seconds=-62_135_596_801)}, "pay_deadline", "between the years 1 and 9999"),
        Case({"pay_deadline": Timestamp(seconds=253_402_300_800)}, "pay_deadline", "between the years"),
        Case({"pay_deadline": Timestamp(nanos=-1)}, "pay_deadline", "between the years"),
        Case({"site_order_id": ""}, "site_order_id", "1 to 128 printable characters"),
        Case({"site_order_id": "  "}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "a" * 129}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "1\n2"}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "1\u3164"}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "1\u28002"}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "1\ufe0f"}, "site_order_id", "1 to 128 printable"),
        Case({"site_order_id": "1\0"}, "site_order_id", "1 to 128 printable"),
        *(
            Case({"evidence_ref": value}, field, says)
            for value, field, says in (("", "evidence_ref", EVIDENCE), *evidence())
        ),
        Case({"detail": "a" * 4_001}, "detail", "has 4,001 characters, the limit is 4,000"),
        Case({"detail": "a\0"}, "detail", "NUL"),
        Case({"error_code": -1}, "error_code", "from 0 to 99,999"),
        Case({"error_code": 100_000}, "error_code", "from 0 to 99,999"),
        Case({"terminal_status": 4}, "terminal_status", "without terminal"),
        Case({"terminal": True, "terminal_status": 1}, "terminal_status", "succeeded, failed or needs_human"),
        Case({"terminal": True, "terminal_status": 7}, "terminal_status", "succeeded, failed or needs_human"),
        Case({"terminal": True, "terminal_status": 99}, "terminal_status", "is 99"),
    ],
    "RequestSubmitPermit": [
        *holder(),
        *opaque("journal_id"),
        Case(look(verdict=0), "verification.verdict", "is required"),
        Case(look(verdict=9), "verification.verdict", "is required"),
        Case(look(begun_at_lease_age=None), "verification.begun_at_lease_age", "is required"),
        Case(look(begun_at_lease_age=Duration(nanos=-1)), "verification.begun_at_lease_age", "not be negative"),
        Case(look(begun_at_lease_age=Duration(seconds=2**62)), "verification.begun_at_lease_age", "no valid duration"),
        *(Case(look(evidence_ref=value), field, says) for value, field, says in evidence("verification.evidence_ref")),
        Case({"terms": orders_pb2.Terms()}, "terms.payable_yen", "is required"),
        Case(on_terms(payable_yen=-1), "terms.payable_yen", "from 0 to 9,007,199,254,740,991"),
        Case(on_terms(payable_yen=2**53), "terms.payable_yen", "from 0 to 9,007,199,254,740,991"),
        Case(on_terms(items=[]), "terms.items", "1 to 100 items"),
        Case(on_terms(items=[{}] * 101), "terms.items", "1 to 100 items"),
        Case(on_terms(digest="0" * 64), "terms.digest", "is not the digest of these terms"),
        Case(on_item(item_url=""), "terms.items[0].item_url", "is required"),
        Case(on_item(item_url="a" * 2_001), "terms.items[0].item_url", "has 2,001 characters, the limit is 2,000"),
        Case(on_item(item_url="a\tb"), "terms.items[0].item_url", "printable"),
        Case(on_item(variant_id="a" * 1_001), "terms.items[0].variant_id", "the limit is 1,000"),
        Case(on_item(variant_id="a\nb"), "terms.items[0].variant_id", "printable"),
        Case(on_item(quantity=0), "terms.items[0].quantity", "from 1 to 9,999"),
        Case(on_item(quantity=10_000), "terms.items[0].quantity", "from 1 to 9,999"),
        Case(on_item(unit_price_yen=-1), "terms.items[0].unit_price_yen", "from 0"),
    ],
    "ReclaimOrder": [
        *keys("task_id"),
        *keys("worker_id"),
        *opaque("session_id"),
        *opaque("journal_id"),
        *accounts(),
        Case({"sites": ["rakuten"] * 17}, "sites", "must name 1 to 16 sites"),
        Case({"sites": ["rakuten", "amazon"]}, "sites", "one of the configured sites"),
        Case({"requested_by": "x" * 129}, "requested_by", "128"),
        Case({"requested_by": "x\0"}, "requested_by", "NUL"),
        Case({"reason": "x" * 1_001}, "reason", "1,000"),
    ],
}
