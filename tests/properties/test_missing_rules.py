"""A model that does not notice a missing rule has not got the rule: each is taken out of the gateway in turn."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

import gateway.account_queries.lease
import gateway.account_queries.result
import gateway.account_queries.timeouts
from gateway.domain.account_queries import QueryStatus
from gateway.store.named_sql import statements
from tests.properties.order_machine import OrdersByUseCase
from tests.properties.profile import QUICK
from tests.properties.query_machine import QueriesByUseCase
from tests.simulation.mutants.hunt import MUTANTS

ONLY_FIND = settings(QUICK, max_examples=600, phases=[Phase.generate], report_multiple_bugs=False)
OF_ORDERS = (
    "no_token_check",
    "no_settle_time",
    "settle_counted_from_the_permit",
    "second_permit_to_another_journal",
    "automatic_requeue",
    "expiry_only_by_the_sweep",
    "null_erases",
    "order_of_arrival",
    "no_pause",
    "a_lease_for_everybody",
)


@contextmanager
def a_late_result_counts() -> Iterator[None]:
    """A result is taken whatever attempt it belongs to."""
    attempt_of = gateway.account_queries.result._attempt_of

    def newest(tx: Any, query: Any, told: Any) -> Any:
        found = attempt_of(tx, query, told)
        return query.attempts if isinstance(found, int) else found

    with patch.object(gateway.account_queries.result, "_attempt_of", newest):
        yield


@contextmanager
def attempts_without_end() -> Iterator[None]:
    """A query is handed out as often as its lease runs out."""

    def after_timeout(*, attempts: int, max_attempts: int, too_old: bool) -> QueryStatus:
        return QueryStatus.EXPIRED if too_old else QueryStatus.QUEUED

    with patch.object(gateway.account_queries.timeouts, "after_timeout", after_timeout):
        yield


@contextmanager
def stale_for_ever() -> Iterator[None]:
    """A lease that ran out is left where it is, as an order's would be."""
    with patch.object(gateway.account_queries.lease, "move_on_timed_out", lambda *_: None):
        yield


@contextmanager
def everything_is_pruned_at_once() -> Iterator[None]:
    """The retention does not count."""
    broken = statements()["queries_prune"].replace("<= :completed_before_us", "> :completed_before_us")
    with patch.dict(statements(), {"queries_prune": broken}):
        yield


OF_QUERIES: tuple[Callable[[], AbstractContextManager[None]], ...] = (
    a_late_result_counts,
    attempts_without_end,
    stale_for_ever,
    everything_is_pruned_at_once,
)


def demand_a_finding(machine: type[RuleBasedStateMachine], broken: AbstractContextManager[None]) -> None:
    with broken, pytest.raises(Exception):  # noqa: B017, PT011 -- whichever comparison fails first
        run_state_machine_as_test(machine, settings=ONLY_FIND)


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize("missing", OF_ORDERS)
def test_of_the_order_machine(missing: str) -> None:
    demand_a_finding(OrdersByUseCase, MUTANTS[missing]())


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize("missing", OF_QUERIES, ids=lambda missing: missing.__name__)
def test_of_the_query_machine(missing: Callable[[], AbstractContextManager[None]]) -> None:
    demand_a_finding(QueriesByUseCase, missing())
