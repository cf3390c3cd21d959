"""Row by row of the error table: the same refusal over every transport that can tell it, with status and code."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.api.codec.terms import terms_message
from gateway.api.errors import ERRORS
from gateway.domain.refusals import Reason
from gateway.store.sqlite import writer
from tests.contract.stage import JOURNAL, SESSION, Stage
from tests.contract.transports import TRANSPORTS, RefusedError, clients
from tests.gateway.support.book import terms
from tests.gateway.support.in_process import running_gateway

SECRET_OF_MIKA: Final = "a-secret-of-mika"
TOKENS: Final = {
    "api_token": ("every-role",),
    "upstream_token": ("upstream-only",),
    "operator_token": (f"mika={SECRET_OF_MIKA}", "riku=a-secret-of-rikus"),
}


async def invalid_field(stage: Stage) -> None:
    await stage.submit(site="elsewhere")


async def task_not_found(stage: Stage) -> None:
    await stage.look("none")


async def lease_invalid(stage: Stage) -> None:
    await stage.submit()
    fields = {"task_id": "po-1", "worker_id": "w1", "lease_token": "x" * 43}
    await stage.call("OrderLeaseService/RenewLease", fields, ("POST", "/api/orders/po-1/renew", {"worker_id": "w1"}))


async def status_conflict(stage: Stage) -> None:
    await stage.submit()
    fields = {"task_id": "po-1", "worker_id": "w1", "session_id": SESSION, "journal_id": JOURNAL}
    await stage.call(
        "OrderLeaseService/ReclaimOrder", fields, ("POST", "/api/orders/po-1/reclaim", {"worker_id": "w1"})
    )


async def status_conflict_of_cancel(stage: Stage) -> None:
    await stage.submit()
    await stage.lease()
    await stage.clients.connect("OrderService/CancelOrder", task_id="po-1", reason="not wanted")


async def another_task_active(stage: Stage) -> None:
    await stage.submit("po-1")
    await stage.lease()
    stage.gateway.time.advance(301)
    await stage.submit("po-2")
    await stage.lease(session="session-of-another")
    fields = {"task_id": "po-1", "worker_id": "w1", "session_id": SESSION, "journal_id": JOURNAL}
    await stage.call(
        "OrderLeaseService/ReclaimOrder", fields, ("POST", "/api/orders/po-1/reclaim", {"worker_id": "w1"})
    )


async def query_not_found(stage: Stage) -> None:
    await stage.call("AccountQueryService/GetQuery", {"query_id": "none"}, ("GET", "/api/account/queries/none"))


async def query_lease_invalid(stage: Stage) -> None:
    query = {"query_id": "aq-1", "kind": "order_list"}
    await stage.clients.rest("POST", "/api/account/queries", query)
    error = {"worker_id": "w1", "success": False, "error_code": 5001, "error_message": "logged out"}
    await stage.call(
        "QueryLeaseService/ReportQueryResult",
        {"query_id": "aq-1", "worker_id": "w1", "attempt": 1, "error": {"code": 5001, "message": "logged out"}},
        ("POST", "/api/account/queries/aq-1/result", error),
    )


async def dispatch_paused(stage: Stage) -> None:
    await stage.submit()
    lease = await stage.lease()
    stage.gateway.pause()
    await stage.permit(lease)


async def permit_order_known(stage: Stage) -> None:
    await stage.submit()
    lease = await stage.lease()
    await stage.clients.grpc(
        "OrderLeaseService/ReportOrder",
        task_id="po-1", worker_id="w1", lease_token=lease.lease_token, state=3, sequence=1,
    )  # fmt: skip
    await stage.permit(lease)


async def permit_not_verified(stage: Stage) -> None:
    await stage.permit(await stage.recovered_after_permit())


async def permit_other_journal(stage: Stage) -> None:
    lease = await stage.recovered_after_permit()
    await stage.permit(
        lease, "another-journal-of-it", attests_no_click_record=True, verification=await stage.look_now(lease)
    )


async def permit_not_attested(stage: Stage) -> None:
    lease = await stage.recovered_after_permit()
    await stage.permit(lease, verification=await stage.look_now(lease))


async def permit_not_settled(stage: Stage) -> None:
    lease = await stage.recovered_after_permit()
    await stage.permit(lease, attests_no_click_record=True, verification=await stage.look_now(lease))


async def permit_expired(stage: Stage) -> None:
    await stage.submit()
    lease = await stage.lease()
    await stage.permit(lease)
    stage.gateway.time.advance(31)
    await stage.permit(lease)


async def lease_not_acknowledged(stage: Stage) -> None:
    await stage.submit()
    await stage.permit(await stage.lease(acknowledge=False))


async def worker_not_found(stage: Stage) -> None:
    fields = {"worker_id": "nobody", "reason": "retired"}
    await getattr(stage.clients, stage.transport)("OperationsService/ForgetWorker", **fields)


async def callback_not_found(stage: Stage) -> None:
    fields = {"callback_id": "999999"}
    await getattr(stage.clients, stage.transport)("OperationsService/ReplayCallback", **fields)


async def feature_off(stage: Stage) -> None:
    await stage.call("CatalogService/ListCatalogOrders", {}, ("GET", "/api/account/orders"))


async def unauthenticated(stage: Stage) -> None:
    stage.clients = stage.clients.with_token("guessed")
    await stage.look()


async def permission_denied(stage: Stage) -> None:
    stage.clients = stage.clients.with_token("upstream-only")
    await stage.call(
        "OrderLeaseService/RenewLease",
        {"task_id": "po-1", "worker_id": "w1"},
        ("POST", "/api/orders/po-1/renew", {"worker_id": "w1"}),
    )


async def permission_denied_of_operations(stage: Stage) -> None:
    await stage.clients.with_token("upstream-only").connect("OperationsService/ListWorkers")


async def too_large(stage: Stage) -> None:
    """Beyond the limit of the body that the gateway of these cases has; a gRPC message may be as long as any text."""
    text = "x" * (2_000_000 if stage.transport == "grpc" else 70_000)
    fields = {"task_id": "po-1", "site": "rakuten", "intent_json": text}
    await stage.call("OrderService/SubmitOrder", fields, ("POST", "/api/orders", text))


async def too_many(stage: Stage) -> None:
    for _ in range(20):
        await stage.submit()


async def store_unavailable(stage: Stage) -> None:
    stage.monkeypatch.setattr(writer, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(stage.gateway.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await stage.submit()


async def shutting_down(stage: Stage) -> None:
    if stage.transport == "rest":
        waiting = asyncio.create_task(stage.clients.rest("GET", "/api/orders/lease", worker_id="w1", wait=30))
    else:
        waiting = asyncio.create_task(
            stage.clients.grpc(
                "OrderLeaseService/LeaseOrders",
                worker_id="w1", session_id=SESSION, journal_id=JOURNAL, sites=["rakuten"], wait={"seconds": 30},
            )
        )  # fmt: skip
    while not stage.gateway.rows("SELECT 1 FROM workers"):  # noqa: ASYNC110 - the row is the signal
        await asyncio.sleep(0.01)
    stage.gateway.stop.set()
    await waiting


async def internal(stage: Stage) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("what only the log may say")

    for module in ("gateway.api.services.orders", "gateway.api.rest.orders"):
        stage.monkeypatch.setattr(f"{module}.get_task", broken)
    await stage.look()


async def capped(stage: Stage) -> Any:
    """A task with a cap of 3,000 yen, in a worker's hand."""
    await stage.clients.grpc(
        "OrderService/SubmitOrder", task_id="po-1", site="rakuten", intent_json="{}", max_total_yen=3_000
    )
    return await stage.lease()


async def terms_over_cap(stage: Stage) -> None:
    await stage.permit(await capped(stage), terms=terms_message(terms(3_001)))


async def budget_exceeded(stage: Stage) -> None:
    await stage.clients.grpc(
        "OperationsService/SetBudget", budget_id="house", period="BUDGET_PERIOD_DAY", limit_yen=1_000, reason="so much"
    )
    await stage.permit(await capped(stage), terms=terms_message(terms(1_001)))


async def budget_not_found(stage: Stage) -> None:
    await getattr(stage.clients, stage.transport)("OperationsService/GetBudget", budget_id="house")


async def permit_terms_required(stage: Stage) -> None:
    await stage.permit(await capped(stage))


async def permit_terms_changed(stage: Stage) -> None:
    lease = await capped(stage)
    await stage.permit(lease, terms=terms_message(terms(3_000)))
    await stage.permit(lease, terms=terms_message(terms(2_000)))


async def too_late(stage: Stage) -> None:
    until = stage.gateway.time.wall + timedelta(seconds=60)
    await stage.clients.grpc(
        "OrderService/SubmitOrder", task_id="po-1", site="rakuten", intent_json="{}", not_after=until
    )
    lease = await stage.lease()
    stage.gateway.time.advance(61)
    await stage.permit(lease)


async def permit_dry_run(stage: Stage) -> None:
    await stage.clients.grpc(
        "OrderService/SubmitOrder", task_id="po-1", site="rakuten", intent_json="{}", stop_before_submit=True
    )
    await stage.permit(await stage.lease())


async def cancel_requested(stage: Stage) -> None:
    await stage.submit()
    lease = await stage.lease()
    await stage.clients.connect("OrderService/CancelOrder", task_id="po-1", reason="not wanted", while_leased=True)
    await stage.permit(lease)


async def cancel_too_late(stage: Stage) -> None:
    await stage.submit()
    await stage.permit(await stage.lease())
    await getattr(stage.clients, stage.transport)(
        "OrderService/CancelOrder", task_id="po-1", reason="not wanted", while_leased=True
    )


async def approved(stage: Stage, valid_for: int = 3_600) -> Any:
    """The lease of a task that somebody has approved for 3,000 yen."""
    about = {"task_id": "po-1", "site": "rakuten", "intent_json": "{}", "requires_approval": True}
    await stage.clients.grpc("OrderService/SubmitOrder", **about)
    async with clients(stage.gateway.port, stage.gateway.http_port, SECRET_OF_MIKA) as mika:
        await mika.grpc(
            "OperationsService/ApproveOrder",
            task_id="po-1", reason="needed", max_total_yen=3_000, valid_for={"seconds": valid_for},
        )  # fmt: skip
    return await stage.lease()


async def approval_required(stage: Stage) -> None:
    await stage.permit(await approved(stage), terms=terms_message(terms(3_000)))
    stage.gateway.time.advance(301)
    again = await stage.clients.grpc(
        "OrderLeaseService/ReclaimOrder",
        task_id="po-1", worker_id="w1", session_id="session-after-it", journal_id=JOURNAL,
    )  # fmt: skip
    await stage.renew(again.lease)
    await stage.permit(again.lease, terms=terms_message(terms(3_000)))


async def approval_expired(stage: Stage) -> None:
    lease = await approved(stage, valid_for=60)
    stage.gateway.time.advance(61)
    await stage.permit(lease, terms=terms_message(terms(3_000)))


async def approval_of_one_s_own(stage: Stage) -> None:
    await stage.clients.grpc(
        "OrderService/SubmitOrder", task_id="po-1", site="rakuten", intent_json="{}", requires_approval=True
    )
    await getattr(stage.clients, stage.transport)(
        "OperationsService/ApproveOrder", task_id="po-1", reason="needed", max_total_yen=3_000
    )


async def second_person_required(stage: Stage) -> None:
    about = {"task_id": "po-1", "site": "rakuten", "intent_json": "{}", "requires_approval": True}
    await stage.clients.grpc("OrderService/SubmitOrder", **about)
    async with clients(stage.gateway.port, stage.gateway.http_port, SECRET_OF_MIKA) as mika:
        await getattr(mika, stage.transport)(
            "OperationsService/ApproveOrder", task_id="po-1", reason="needed", max_total_yen=100_001
        )


async def proposal_not_found(stage: Stage) -> None:
    call = getattr(stage.clients, stage.transport)
    await call("OperationsService/ConfirmProposal", proposal_id=7, reason="seen it too")


EVERYWHERE: Final = TRANSPORTS
LEASES: Final = ("grpc", "rest")
CONTRACT: Final = ("grpc", "connect")
PERMITS: Final = ("grpc",)

ROWS: Final[dict[Reason, list[tuple[Callable[[Stage], Awaitable[None]], tuple[str, ...]]]]] = {
    Reason.INVALID_FIELD: [(invalid_field, EVERYWHERE)],
    Reason.TASK_NOT_FOUND: [(task_not_found, EVERYWHERE)],
    Reason.LEASE_INVALID: [(lease_invalid, LEASES)],
    Reason.STATUS_CONFLICT: [(status_conflict, LEASES), (status_conflict_of_cancel, ("connect",))],
    Reason.ANOTHER_TASK_ACTIVE: [(another_task_active, LEASES)],
    Reason.QUERY_NOT_FOUND: [(query_not_found, EVERYWHERE)],
    Reason.QUERY_LEASE_INVALID: [(query_lease_invalid, LEASES)],
    Reason.DISPATCH_PAUSED: [(dispatch_paused, PERMITS)],
    Reason.PERMIT_ORDER_KNOWN: [(permit_order_known, PERMITS)],
    Reason.PERMIT_NOT_VERIFIED: [(permit_not_verified, PERMITS)],
    Reason.PERMIT_OTHER_JOURNAL: [(permit_other_journal, PERMITS)],
    Reason.PERMIT_NOT_ATTESTED: [(permit_not_attested, PERMITS)],
    Reason.PERMIT_NOT_SETTLED: [(permit_not_settled, PERMITS)],
    Reason.PERMIT_EXPIRED: [(permit_expired, PERMITS)],
    Reason.TERMS_OVER_CAP: [(terms_over_cap, PERMITS)],
    Reason.BUDGET_EXCEEDED: [(budget_exceeded, PERMITS)],
    Reason.BUDGET_NOT_FOUND: [(budget_not_found, CONTRACT)],
    Reason.TOO_LATE: [(too_late, PERMITS)],
    Reason.PERMIT_DRY_RUN: [(permit_dry_run, PERMITS)],
    Reason.CANCEL_REQUESTED: [(cancel_requested, PERMITS)],
    Reason.CANCEL_TOO_LATE: [(cancel_too_late, CONTRACT)],
    Reason.APPROVAL_REQUIRED: [(approval_required, PERMITS)],
    Reason.APPROVAL_EXPIRED: [(approval_expired, PERMITS)],
    Reason.SECOND_PERSON_REQUIRED: [(second_person_required, CONTRACT)],
    Reason.PROPOSAL_NOT_FOUND: [(proposal_not_found, CONTRACT)],
    Reason.PERMIT_TERMS_REQUIRED: [(permit_terms_required, PERMITS)],
    Reason.PERMIT_TERMS_CHANGED: [(permit_terms_changed, PERMITS)],
    Reason.LEASE_NOT_ACKNOWLEDGED: [(lease_not_acknowledged, PERMITS)],
    Reason.WORKER_NOT_FOUND: [(worker_not_found, CONTRACT)],
    Reason.CALLBACK_NOT_FOUND: [(callback_not_found, CONTRACT)],
    Reason.FEATURE_OFF: [(feature_off, EVERYWHERE)],
    Reason.UNAUTHENTICATED: [(unauthenticated, EVERYWHERE)],
    Reason.PERMISSION_DENIED: [
        (permission_denied, LEASES),
        (permission_denied_of_operations, ("connect",)),
        (approval_of_one_s_own, CONTRACT),
    ],
    Reason.TOO_LARGE: [(too_large, EVERYWHERE)],
    Reason.TOO_MANY: [(too_many, EVERYWHERE)],
    Reason.STORE_UNAVAILABLE: [(store_unavailable, EVERYWHERE)],
    Reason.SHUTTING_DOWN: [(shutting_down, LEASES)],
    Reason.INTERNAL: [(internal, EVERYWHERE)],
}
FRESH: Final = {another_task_active, cancel_too_late, shutting_down}
"""Cases that leave a gateway behind on which they cannot be made again."""

CASES: Final = [
    pytest.param(reason, provoke, each, id=f"{reason}-{'-'.join(each)}")
    for reason, rows in ROWS.items()
    for provoke, transports in rows
    for each in ([(transport,) for transport in transports] if provoke in FRESH else [transports])
]


def test_every_row_of_the_table_is_provoked() -> None:
    assert ROWS.keys() == ERRORS.keys() == set(Reason)


@pytest.mark.parametrize(("reason", "provoke", "transports"), CASES)
async def test_a_refusal_is_told_with_its_status_and_code(
    reason: Reason,
    provoke: Callable[[Stage], Awaitable[None]],
    transports: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {"max_body_bytes": 65_536} | TOKENS
    if reason is Reason.SECOND_PERSON_REQUIRED:
        settings["second_person"] = True
    if reason is Reason.TOO_MANY:
        settings["rate_limit_per_second"] = 2
    row = ERRORS[reason]
    async with (
        running_gateway(tmp_path, token="every-role", **settings) as gateway,
        clients(gateway.port, gateway.http_port, "every-role") as connected,
    ):
        for transport in transports:
            with pytest.raises(RefusedError) as refused:
                await provoke(Stage(gateway, connected, transport, monkeypatch))
            told = refused.value
            assert told.code == row.code
            assert told.status == (row.http if transport == "rest" else row.status)
            assert told.reason in (None, reason.name)
            assert "what only the log may say" not in told.message
