"""The query machine is what its model says, by its use cases and over gRPC."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.profile import DEEP, QUICK, SERVED, SERVED_DEEP
from tests.properties.query_machine import QueriesByGrpc, QueriesByUseCase


def test_by_use_case() -> None:
    run_state_machine_as_test(QueriesByUseCase, settings=QUICK)


def test_over_grpc() -> None:
    run_state_machine_as_test(QueriesByGrpc, settings=SERVED)


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_by_use_case_in_depth() -> None:
    run_state_machine_as_test(QueriesByUseCase, settings=DEEP)


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_over_grpc_in_depth() -> None:
    run_state_machine_as_test(QueriesByGrpc, settings=SERVED_DEEP)
