"""Budgets as an operator sets them over gRPC."""

from typing import Any

from ordergateway.v1 import budgets_pb2

from tests.gateway.support.grpc_api import GrpcApi, told


async def set_budget(api: GrpcApi, budget_id: str, yen: int | None, **fields: Any) -> budgets_pb2.Budget:
    """Set a budget of a day for all orders, unless `fields` say something else."""
    wanted = {"period": budgets_pb2.BUDGET_PERIOD_DAY, "reason": "so much is there"} | fields
    request = budgets_pb2.SetBudgetRequest(budget_id=budget_id, limit_yen=yen, **wanted)
    return (await told(api.operations.SetBudget(request))).budget


async def get_budget(api: GrpcApi, budget_id: str, **fields: Any) -> budgets_pb2.GetBudgetResponse:
    """A budget and a page of its ledger."""
    return await told(api.operations.GetBudget(budgets_pb2.GetBudgetRequest(budget_id=budget_id, **fields)))


async def remove_budget(api: GrpcApi, budget_id: str, reason: str = "not wanted") -> None:
    await told(api.operations.DeleteBudget(budgets_pb2.DeleteBudgetRequest(budget_id=budget_id, reason=reason)))
