"""Checks what the gateway answers, as strictly as the gateway checks its callers (the limits stand in the contract).

What is wrong is told in one line that names the call and the field, never the value of a lease token, and counts as no
answer at all: InvalidAnswer. So nothing malformed reaches the journal, a path on the disk, or the site.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import query_leases_pb2

from common.order_numbers import MAX_ORDER_NUMBER
from worker.gateway.bounds import ACKNOWLEDGE_WITHIN, LEASE_TTL
from worker.gateway.port import InvalidAnswer
from worker.gateway.wire import from_timestamp, state_from_wire, to_seconds

T = TypeVar("T", bound=Message)

MAX_OTHER_NUMBERS: Final = 1_000
MAX_MESSAGES_OF_A_STREAM: Final = 100
"""A stream waits for a minute at most and brings a heartbeat every 10 s; far more is a flood."""

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SITE: Final = re.compile(r"[a-z0-9_-]{1,64}")
_LEASE_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_SHOWN: Final = 80


def message_of(method: str, answer: T | None) -> T:
    """Return the message; grpc gives None for bytes that are none."""
    if answer is None:
        raise InvalidAnswer(method, "it is no message of the contract")
    return answer


def check_lease(
    method: str,
    lease: pb.Lease,
    accounts: Collection[str],
    *,
    sites: Collection[str] | None = None,
    task_id: str = "",
) -> pb.Lease:
    """Check a lease, and return it if it can be worked on.

    `accounts`, `sites`: those asked for; `task_id`: the one asked for. None, empty: any.

    The intent is not looked into: what is wrong with it ends the order, and the upstream is told.
    """
    check_key(method, "task_id", lease.task_id)
    if task_id:
        check_same(method, "task_id", lease.task_id, task_id)
    _check_site(method, lease.site, sites)
    _check_account(method, lease.account, accounts)
    _ensure(method, "lease_token", _LEASE_TOKEN.fullmatch(lease.lease_token), "is not the 43 characters of a token")
    _ensure(method, "lease_count", lease.lease_count >= 1, f"is {lease.lease_count}, must be at least 1")
    known = lease.known_state == 0 or state_from_wire(lease.known_state) is not None
    _ensure(method, "known_state", known, f"{lease.known_state} is a state that this version does not know")
    _check_moment(method, "task_created_at", lease.task_created_at)
    numbers = lease.other_site_order_ids
    _check_numbers(method, "other_site_order_ids", numbers)
    _ensure(method, "lease_ttl", to_seconds(lease.lease_ttl, LEASE_TTL) > 0, "must be a time above zero")
    within = to_seconds(lease.acknowledge_within, ACKNOWLEDGE_WITHIN)
    _ensure(method, "acknowledge_within", within > 0, "must be a time above zero")
    return lease


def check_renewal(method: str, answer: pb.RenewLeaseResponse, task_id: str) -> pb.RenewLeaseResponse:
    """Check a renewal: it must be of the task that was asked about, for a time that can be."""
    check_same(method, "task_id", answer.task_id, task_id)
    _ensure(method, "lease_ttl", to_seconds(answer.lease_ttl, LEASE_TTL) > 0, "must be a time above zero")
    _check_numbers(method, "other_orders.site_order_ids", answer.other_orders.site_order_ids)
    return answer


def check_query_lease(
    method: str, lease: query_leases_pb2.QueryLease, accounts: Collection[str], *, sites: Collection[str]
) -> query_leases_pb2.QueryLease:
    """Check a query's lease, and return it if it can be worked on.

    Its kind and its parameters are not looked into: the query fails for those.
    """
    check_key(method, "query_id", lease.query_id)
    _check_site(method, lease.site, sites)
    _check_account(method, lease.account, accounts)
    _ensure(method, "attempt", lease.attempt >= 1, f"is {lease.attempt}, must be at least 1")
    _ensure(method, "lease_ttl", to_seconds(lease.lease_ttl, LEASE_TTL) > 0, "must be a time above zero")
    return lease


def check_key(method: str, field: str, value: str) -> None:
    """Check a task_id or query_id: nothing else may become a path or a row."""
    _ensure(method, field, _KEY.fullmatch(value), f"{_shown(value)} is no key of the contract")


def check_same(method: str, field: str, value: str, asked: str) -> None:
    """Check that the answer is about what was asked."""
    _ensure(method, field, value == asked, f"is {_shown(value)}, asked was about {_shown(asked)}")


def _check_numbers(method: str, field: str, numbers: Collection[str]) -> None:
    _ensure(
        method,
        field,
        len(numbers) <= MAX_OTHER_NUMBERS and all(0 < len(number) <= MAX_ORDER_NUMBER for number in numbers),
        f"must be at most {MAX_OTHER_NUMBERS} of 1 to {MAX_ORDER_NUMBER} characters",
    )


def _check_site(method: str, site: str, asked: Collection[str] | None) -> None:
    _ensure(method, "site", _SITE.fullmatch(site), f"{_shown(site)} is no name of a site")
    if asked is not None:
        _ensure(method, "site", site in asked, f"{site} was not asked for")


def _check_account(method: str, account: str, asked: Collection[str]) -> None:
    """Check that the account was asked for: what is of another one would be done with the wrong login."""
    _ensure(method, "account", account in asked, f"{_shown(account)} was not asked for")


def _check_moment(method: str, field: str, timestamp: Timestamp) -> None:
    try:
        possible = _EARLIEST <= from_timestamp(timestamp) <= _LATEST
    except (ValueError, OverflowError):
        possible = False
    _ensure(method, field, possible, f"is no moment that can be ({timestamp.seconds} s of Unix time)")


def _ensure(method: str, field: str, holds: object, why: str) -> None:
    if not holds:
        raise InvalidAnswer(method, f"{field}: {why}")


def _shown(value: str) -> str:
    return ascii(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
