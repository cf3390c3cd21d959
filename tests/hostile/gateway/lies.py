"""The table: every answer that the contract does not allow, and what the worker says of it."""

from dataclasses import dataclass
from typing import Any

from tests.hostile.gateway.server import Bend

GARBAGE = b"\xff\xff\xff\xff"
FAR = 315_576_000_000  # seconds: the longest duration, and far beyond the last year of a timestamp


@dataclass(frozen=True)
class Lie:
    """`said`: what the log says of it, once, in one line."""

    name: str
    method: str
    bend: Bend
    said: str

    def __str__(self) -> str:
        return f"{self.method}-{self.name}"


def with_fields(**fields: Any) -> Bend:
    """The honest answer with these fields changed; those of a lease where it brings one. None: absent."""

    def bend(answer: Any) -> list[Any]:
        changed = type(answer)()
        changed.CopyFrom(answer)
        target = changed
        if "lease" in changed.DESCRIPTOR.fields_by_name:
            if not changed.HasField("lease"):
                return [changed]
            target = changed.lease
        for name, value in fields.items():
            if value is None:
                target.ClearField(name)
            elif isinstance(value, list):
                target.ClearField(name)
                getattr(target, name).extend(value)
            elif name in ("task_created_at", "lease_ttl", "acknowledge_within", "valid_for", "lease_age"):
                getattr(target, name).Clear()
                getattr(target, name).seconds = value
            else:
                setattr(target, name, value)
        return [changed]

    return bend


def garbage(_answer: Any) -> list[Any]:
    return [GARBAGE]


def nothing(_answer: Any) -> list[Any]:
    return []


def flood(answer: Any) -> list[Any]:
    return [answer] * 500


_KEYS = ("", "..", "../../etc/cron.d/x", "/etc/passwd", "a/b", ".hidden", "a\n", "a\0b", "x" * 129, "é", "-rf", "a b")
_SITES = ("", "rakuten", "../sandbox", "SANDBOX", "s" * 65)
_TOKENS = ("", "short", "x" * 44, "x" * 42 + "\n", "x" * 42 + "/")
_COUNTS = (0, -1, -(2**31))
_MOMENTS = (None, -FAR, FAR, -62_135_596_800, 0, 253_402_300_799)
_NO_TIMES = (None, 0, -1, -FAR)

OF_LEASES = [
    *(Lie(f"task_id {key!r}", "LeaseOrders", with_fields(task_id=key), "task_id: .* is no key") for key in _KEYS),
    *(
        Lie(f"site {site!r}", "LeaseOrders", with_fields(site=site), "site: .* (name of a site|not asked)")
        for site in _SITES
    ),
    *(
        Lie(f"token {token!r}", "LeaseOrders", with_fields(lease_token=token), "lease_token: is not")
        for token in _TOKENS
    ),
    *(Lie(f"count {count}", "LeaseOrders", with_fields(lease_count=count), "lease_count: is ") for count in _COUNTS),
    *(Lie(f"created {at}", "LeaseOrders", with_fields(task_created_at=at), "task_created_at: ") for at in _MOMENTS),
    *(Lie(f"ttl {ttl}", "LeaseOrders", with_fields(lease_ttl=ttl), "lease_ttl: ") for ttl in _NO_TIMES),
    *(
        Lie(f"ack {time}", "LeaseOrders", with_fields(acknowledge_within=time), "acknowledge_within: ")
        for time in _NO_TIMES
    ),
    *(
        Lie(f"account {account!r}", "LeaseOrders", with_fields(account=account), "account: .* was not asked for")
        for account in ("another", "../x", "x" * 65)
    ),
    Lie("state", "LeaseOrders", with_fields(known_state=77), "known_state: 77 is a state that this version"),
    Lie("numbers", "LeaseOrders", with_fields(other_site_order_ids=["1"] * 1001), "other_site_order_ids: "),
    Lie("empty number", "LeaseOrders", with_fields(other_site_order_ids=[""]), "other_site_order_ids: "),
    Lie("garbage", "LeaseOrders", garbage, "no message of the contract"),
    Lie("flood", "LeaseOrders", flood, "more than 100 messages"),
]
OF_CALLS = [
    Lie("another task", "RenewLease", with_fields(task_id="po-2"), "task_id: is 'po-2', asked was about 'po-1'"),
    Lie("no task", "RenewLease", with_fields(task_id=""), "task_id: is ''"),
    *(Lie(f"ttl {ttl}", "RenewLease", with_fields(lease_ttl=ttl), "lease_ttl: ") for ttl in _NO_TIMES),
    Lie("garbage", "RenewLease", garbage, "no message of the contract"),
    Lie("another task", "RequestSubmitPermit", with_fields(task_id="po-2"), "task_id: is 'po-2'"),
    Lie("no task", "RequestSubmitPermit", with_fields(task_id=""), "task_id: is ''"),
    Lie("garbage", "RequestSubmitPermit", garbage, "no message of the contract"),
    Lie("another task", "ReportOrder", with_fields(task_id="po-2"), "task_id: is 'po-2'"),
    Lie("garbage", "ReportOrder", garbage, "no message of the contract"),
    Lie("another task", "ReclaimOrder", with_fields(task_id="po-2"), "task_id: is 'po-2', asked was about 'po-1'"),
    Lie("no lease", "ReclaimOrder", lambda answer: [type(answer)()], "task_id: '' is no key"),
    Lie("another account", "ReclaimOrder", with_fields(account="a"), "account: 'a' was not asked for"),
    Lie("count", "ReclaimOrder", with_fields(lease_count=0), "lease_count: is 0"),
    Lie("garbage", "ReclaimOrder", garbage, "no message of the contract"),
]
OF_QUERIES = [
    *(Lie(f"query_id {key!r}", "LeaseQueries", with_fields(query_id=key), "query_id: .* is no key") for key in _KEYS),
    *(Lie(f"site {site!r}", "LeaseQueries", with_fields(site=site), "site: ") for site in _SITES),
    Lie("another account", "LeaseQueries", with_fields(account="a"), "account: 'a' was not asked for"),
    *(Lie(f"attempt {count}", "LeaseQueries", with_fields(attempt=count), "attempt: is ") for count in _COUNTS),
    *(Lie(f"ttl {ttl}", "LeaseQueries", with_fields(lease_ttl=ttl), "lease_ttl: ") for ttl in _NO_TIMES),
    Lie("garbage", "LeaseQueries", garbage, "no message of the contract"),
    Lie("flood", "LeaseQueries", flood, "more than 100 messages"),
    Lie("another query", "ReportQueryResult", with_fields(query_id="q-2"), "query_id: is 'q-2'"),
    Lie("garbage", "ReportQueryResult", garbage, "no message of the contract"),
]
