"""Proposing, confirming and withdrawing at once, each over a connection of its own: the database lets one win."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
from ordergateway.v1 import operations_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub

from tests.gateway.support.in_process import running_gateway

PEOPLE = ("alice", "bob", "carol", "dan")
ROUNDS = 10


async def ask(port: int, who: str, method: str, request: Any) -> str:
    """Make a call on a connection of its own; return how it ended."""
    metadata = (("authorization", f"Bearer the-secret-of-{who}"),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            answer = await getattr(OperationsServiceStub(channel), method)(request, metadata=metadata, timeout=60)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name} {error.details()}"
        return "again" if getattr(answer, "already_confirmed", False) else method


async def test_of_all_who_decide_at_once_one_has_decided(tmp_path: Path) -> None:
    tokens = tuple(f"{name}=the-secret-of-{name}" for name in PEOPLE)
    async with running_gateway(
        tmp_path, token="the-token", api_token=("the-token",), operator_token=tokens, second_person=True
    ) as gateway:
        for number in range(1, ROUNDS + 1):
            task_id = f"po-{number}"
            await gateway.api.submit(task_id, requires_approval=True, max_total_yen=500_000)
            approve = operations_pb2.ApproveOrderRequest(task_id=task_id, reason="needed", max_total_yen=200_000)
            told = await asyncio.gather(*(ask(gateway.port, name, "ApproveOrder", approve) for name in PEOPLE))
            assert all(each.startswith("FAILED_PRECONDITION") for each in told), told
            [proposal] = gateway.rows(f"SELECT * FROM proposals WHERE task_id = '{task_id}'")  # noqa: S608 - our own name
            others = [name for name in PEOPLE if name != proposal["proposed_by"]]
            about = {"proposal_id": proposal["proposal_id"], "reason": "agreed"}
            confirm, withdraw = (
                operations_pb2.ConfirmProposalRequest(**about), operations_pb2.WithdrawProposalRequest(**about),
            )  # fmt: skip
            ends = await asyncio.gather(
                *(ask(gateway.port, name, "ConfirmProposal", confirm) for name in others),
                ask(gateway.port, proposal["proposed_by"], "ConfirmProposal", confirm),
                ask(gateway.port, proposal["proposed_by"], "WithdrawProposal", withdraw),
            )
            counted = Counter(each.partition(" ")[0] for each in ends)
            assert counted["ConfirmProposal"] + counted["WithdrawProposal"] == 1, ends
            assert counted["FAILED_PRECONDITION"] + counted["PERMISSION_DENIED"] == len(ends) - 1, ends
        approved = gateway.rows("SELECT DISTINCT task_id FROM approvals")
        confirmed = gateway.rows("SELECT task_id FROM proposals WHERE status = 'confirmed'")
        assert sorted(row["task_id"] for row in approved) == sorted(row["task_id"] for row in confirmed)
        assert gateway.rows("SELECT 1 FROM proposals WHERE closed_by = proposed_by AND status = 'confirmed'") == []
