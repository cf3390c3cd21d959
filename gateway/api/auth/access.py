"""Which role may call which method: one table, closed by default. A test walks every method of the contract."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.api.auth.authenticator import EVERY_ROLE, Role

_UPSTREAM: Final = frozenset({Role.UPSTREAM, Role.OPERATOR})
_WORKER: Final = frozenset({Role.WORKER})
_OPERATOR: Final = frozenset({Role.OPERATOR})
_READER: Final = frozenset({Role.OPERATOR, Role.VIEWER})
_READER_OR_UPSTREAM: Final = _READER | _UPSTREAM

_SERVICES: Final[Mapping[str, Mapping[str, frozenset[Role]]]] = {
    "ordergateway.v1.OrderService": {
        "SubmitOrder": frozenset({Role.UPSTREAM}),
        "SubmitOrders": frozenset({Role.UPSTREAM}),
        "GetOrder": _READER_OR_UPSTREAM,
        "ListOrders": _READER_OR_UPSTREAM,
        "WatchOrder": _READER_OR_UPSTREAM,
        "CancelOrder": _UPSTREAM,
    },
    "ordergateway.v1.OrderLeaseService": {
        "LeaseOrders": _WORKER,
        "RenewLease": _WORKER,
        "ReportOrder": _WORKER,
        "RequestSubmitPermit": _WORKER,
        "ReclaimOrder": _WORKER,
    },
    "ordergateway.v1.AccountQueryService": {
        "SubmitQuery": _UPSTREAM,
        "GetQuery": _READER_OR_UPSTREAM,
        "ListQueries": _READER_OR_UPSTREAM,
        "WatchQuery": _READER_OR_UPSTREAM,
    },
    "ordergateway.v1.QueryLeaseService": {
        "LeaseQueries": _WORKER,
        "ReportQueryResult": _WORKER,
    },
    "ordergateway.v1.CatalogService": {
        "ListCatalogOrders": _READER_OR_UPSTREAM,
        "Discover": _UPSTREAM,
        "ListDiscrepancies": _READER,
    },
    "ordergateway.v1.OperationsService": {
        "GetInfo": EVERY_ROLE,
        "GetHealth": _READER_OR_UPSTREAM,
        "ListDecisions": _READER,
        "ListDecisionOutcomes": _READER,
        "DecideOrders": _OPERATOR,
        "ListApprovals": _READER,
        "ApproveOrder": _OPERATOR,
        "ListProposals": _READER,
        "ConfirmProposal": _OPERATOR,
        "WithdrawProposal": _OPERATOR,
        "DenyOrder": _OPERATOR,
        "RequeueOrder": _OPERATOR,
        "WithdrawOrder": _OPERATOR,
        "ResolveOrder": _OPERATOR,
        "ExpireOrder": _OPERATOR,
        "PauseDispatch": _OPERATOR,
        "ResumeDispatch": _OPERATOR,
        "ListWorkers": _READER,
        "ForgetWorker": _OPERATOR,
        "ListEvents": _READER,
        "ListAlerts": _READER,
        "ClearAlert": _OPERATOR,
        "ListCallbacks": _READER,
        "ReplayCallback": _OPERATOR,
        "SendTestCallback": _OPERATOR,
        "SendTestNotification": _OPERATOR,
        "SetBudget": _OPERATOR,
        "ListBudgets": _READER,
        "GetBudget": _READER,
        "DeleteBudget": _OPERATOR,
        "ListStatement": _READER,
        "CreateBackup": _OPERATOR,
    },
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": EVERY_ROLE},
}

ACCESS: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(
    {f"/{service}/{method}": roles for service, methods in _SERVICES.items() for method, roles in methods.items()}
)
"""Full method name (`/package.Service/Method`) to the roles that may call it. gRPC health is open to all."""
