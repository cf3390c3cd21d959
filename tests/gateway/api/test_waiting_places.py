"""Who may wait: nobody takes all places, and watches leave some to workers."""

from contextlib import ExitStack

import pytest

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import Authenticator, Role
from gateway.api.call import Call
from gateway.domain.refusals import Reason, RefusedError

WATCH, LEASE = "/ordergateway.v1.OrderService/WatchOrder", "/ordergateway.v1.OrderLeaseService/LeaseOrders"
TOKENS = {
    "upstream": (frozenset({Role.UPSTREAM}), ["an-upstream-token-01", "an-upstream-token-02"]),
    "worker": (frozenset({Role.WORKER}), ["a-worker-token-00001", "a-worker-token-00002"]),
}


@pytest.fixture
def admission() -> Admission:
    return Admission(Authenticator(TOKENS), max_waiters=8)


def call(admission: Admission, path: str, token: str) -> Call:
    return admission.admit(path, f"Bearer {token}", None)


def taken(admission: Admission, held: ExitStack, path: str, token: str) -> int:
    """How many places such calls get."""
    count = 0
    while True:
        try:
            held.enter_context(admission.waiting(call(admission, path, token)))
        except RefusedError as error:
            refusal = error.refusal
            break
        count += 1
    assert refusal.reason is Reason.TOO_MANY
    assert refusal.retry_after is not None
    return count


def test_watches_leave_places_to_workers_whoever_watches(admission: Admission) -> None:
    with ExitStack() as held:
        assert taken(admission, held, WATCH, "an-upstream-token-01") == 6
        assert taken(admission, held, WATCH, "an-upstream-token-02") == 0
        assert taken(admission, held, LEASE, "a-worker-token-00001") == 2
    assert admission.waiters == 0


def test_one_worker_s_token_leaves_places_to_the_others(admission: Admission) -> None:
    with ExitStack() as held:
        assert taken(admission, held, LEASE, "a-worker-token-00001") == 6
        assert taken(admission, held, LEASE, "a-worker-token-00002") == 2
    with ExitStack() as held:
        assert taken(admission, held, LEASE, "a-worker-token-00001") == 6


def test_a_single_place_can_be_taken() -> None:
    admission = Admission(Authenticator(TOKENS), max_waiters=1)
    with ExitStack() as held:
        assert taken(admission, held, WATCH, "an-upstream-token-01") == 1
