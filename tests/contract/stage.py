"""Where a refusal is provoked: a gateway, who calls it, and what brings a task to where a rule refuses."""

from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.contract.transports import Clients
from tests.gateway.support.in_process import RunningGateway

JOURNAL: Final = "journal-of-worker-1"
SESSION: Final = "session-of-worker-1"
LOOK: Final = {"verdict": 1, "window_fully_covered": True, "evidence_ref": "po-1/r2/00-verify"}


@dataclass
class Stage:
    """A gateway, connections to it, and the transport that the case is about."""

    gateway: RunningGateway
    clients: Clients
    transport: str
    monkeypatch: pytest.MonkeyPatch

    async def call(self, rpc: str, fields: dict[str, Any], rest: tuple[Any, ...]) -> Any:
        """Make one call over the transport of the case; `rest`: method, path and body."""
        if self.transport == "rest":
            return await self.clients.rest(*rest)
        return await getattr(self.clients, self.transport)(rpc, **fields)

    async def submit(self, task_id: str = "po-1", site: str = "rakuten") -> Any:
        return await self.call(
            "OrderService/SubmitOrder",
            {"task_id": task_id, "site": site, "intent_json": "{}"},
            ("POST", "/api/orders", {"task_id": task_id, "site": site, "intent": {}}),
        )

    async def look(self, task_id: str = "po-1") -> Any:
        return await self.call("OrderService/GetOrder", {"task_id": task_id}, ("GET", f"/api/orders/{task_id}"))

    async def lease(self, *, acknowledge: bool = True, session: str = SESSION) -> Any:
        """Lease over gRPC, where tokens and permits are."""
        told = await self.clients.grpc(
            "OrderLeaseService/LeaseOrders",
            worker_id="w1", session_id=session, journal_id=JOURNAL, sites=["rakuten"], wait={"seconds": 0},
        )  # fmt: skip
        if acknowledge:
            await self.renew(told.lease)
        return told.lease

    async def renew(self, lease: Any) -> Any:
        return await self.clients.grpc(
            "OrderLeaseService/RenewLease", task_id=lease.task_id, worker_id="w1", lease_token=lease.lease_token
        )

    async def permit(self, lease: Any, journal: str = JOURNAL, **fields: Any) -> Any:
        return await self.clients.grpc(
            "OrderLeaseService/RequestSubmitPermit",
            task_id=lease.task_id, worker_id="w1", lease_token=lease.lease_token, journal_id=journal, **fields,
        )  # fmt: skip

    async def recovered_after_permit(self) -> Any:
        """A task that was permitted once, whose lease has run out, in the hand of the same worker again."""
        await self.submit()
        await self.permit(await self.lease())
        self.gateway.time.advance(301)
        again = await self.clients.grpc(
            "OrderLeaseService/ReclaimOrder",
            task_id="po-1", worker_id="w1", session_id="session-after-it", journal_id=JOURNAL,
        )  # fmt: skip
        await self.renew(again.lease)
        return again.lease

    async def look_now(self, lease: Any) -> dict[str, Any]:
        return LOOK | {"begun_at_lease_age": (await self.renew(lease)).lease_age}
