"""Which role may call which method, written down a second time: a change to the gateway's own table must be meant.

U: upstream, W: worker, O: operator, V: viewer. Asked over gRPC, with a token that has this role alone; all the rest is
refused.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.api.auth.authenticator import Role
from gateway.domain.refusals import Reason
from tests.gateway.api.test_auth import methods, reason_of
from tests.gateway.support.grpc_api import connected
from tests.gateway.support.in_process import RunningGateway, running_gateway

ROLES = {"U": Role.UPSTREAM, "W": Role.WORKER, "O": Role.OPERATOR, "V": Role.VIEWER}

MAY = """
OrderService/SubmitOrder U
OrderService/SubmitOrders U
OrderService/GetOrder U O V
OrderService/ListOrders U O V
OrderService/WatchOrder U O V
OrderService/CancelOrder U O
OrderLeaseService/LeaseOrders W
OrderLeaseService/RenewLease W
OrderLeaseService/ReportOrder W
OrderLeaseService/RequestSubmitPermit W
OrderLeaseService/ReclaimOrder W
AccountQueryService/SubmitQuery U O
AccountQueryService/GetQuery U O V
AccountQueryService/ListQueries U O V
AccountQueryService/WatchQuery U O V
QueryLeaseService/LeaseQueries W
QueryLeaseService/ReportQueryResult W
CatalogService/ListCatalogOrders U O V
CatalogService/Discover U O
CatalogService/ListDiscrepancies O V
OperationsService/GetInfo U W O V
OperationsService/GetHealth U O V
OperationsService/ListDecisions O V
OperationsService/ListDecisionOutcomes O V
OperationsService/DecideOrders O
OperationsService/ListApprovals O V
OperationsService/ApproveOrder O
OperationsService/DenyOrder O
OperationsService/RequeueOrder O
OperationsService/WithdrawOrder O
OperationsService/ResolveOrder O
OperationsService/ExpireOrder O
OperationsService/PauseDispatch O
OperationsService/ResumeDispatch O
OperationsService/ListProposals O V
OperationsService/ConfirmProposal O
OperationsService/WithdrawProposal O
OperationsService/ListWorkers O V
OperationsService/ForgetWorker O
OperationsService/ListEvents O V
OperationsService/ListAlerts O V
OperationsService/ClearAlert O
OperationsService/ListCallbacks O V
OperationsService/ReplayCallback O
OperationsService/SendTestCallback O
OperationsService/SendTestNotification O
OperationsService/SetBudget O
OperationsService/ListBudgets O V
OperationsService/GetBudget O V
OperationsService/DeleteBudget O
OperationsService/ListStatement O V
OperationsService/CreateBackup O
"""


def table() -> Iterator[tuple[str, frozenset[Role]]]:
    for line in MAY.strip().splitlines():
        method, *letters = line.split()
        yield f"/ordergateway.v1.{method}", frozenset(ROLES[letter] for letter in letters)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    tokens = {f"{role}_token": f"the-token-of-the-{role}" for role in Role}
    async with running_gateway(tmp_path, **tokens) as running:
        yield running


def test_every_method_of_the_contract_stands_here() -> None:
    assert dict(table()).keys() == set(methods())


async def test_each_role_is_let_in_where_the_table_says_and_nowhere_else(guarded: RunningGateway) -> None:
    wrong = []
    for role in Role:
        async with connected(guarded.port, f"the-token-of-the-{role}") as api:
            for path, allowed in table():
                refused = await reason_of(api, path)
                assert refused is not Reason.UNAUTHENTICATED
                if (refused is not Reason.PERMISSION_DENIED) != (role in allowed):
                    wrong.append((role, path))
    assert not wrong
