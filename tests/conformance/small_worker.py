"""A worker as small as one can be, on the generated code alone, with a fault on request: what the kit is tried on.

`python small_worker.py [FAULT]`. It goes to a person with everything that it did not do in one go: it verifies nothing.
"""

import json
import os
import re
import secrets
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import httpx
from google.rpc.status_pb2 import Status
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub

FAULTS = ("acts-at-once", "ignores-the-permit-s-time", "clicks-after-a-refusal", "renumbers", "keeps-a-lost-lease")
FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
SHOP = os.environ["ORDER_GATEWAY_SHOP"]
JOURNAL = Path(os.environ["ORDER_GATEWAY_JOURNAL"])
METADATA = (("authorization", f"Bearer {os.environ['ORDER_GATEWAY_WORKER_TOKEN']}"),)
GATEWAY: Any = OrderLeaseServiceStub(
    grpc.insecure_channel(
        os.environ["ORDER_GATEWAY_GRPC"],
        options=[("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0), ("grpc.max_reconnect_backoff_ms", 500)],
    )
)
NAMES = {"worker_id": "small"}
CREATED, IN_CART, ORDERED, PAID = 1, 2, 3, 5
REASONS = errors_pb2.ErrorReason
ENDS = {
    REASONS.Value("ERROR_REASON_TOO_LATE"): (orders_pb2.TASK_STATUS_FAILED, 0),
    REASONS.Value("ERROR_REASON_CANCEL_REQUESTED"): (orders_pb2.TASK_STATUS_FAILED, 0),
    REASONS.Value("ERROR_REASON_TERMS_OVER_CAP"): (orders_pb2.TASK_STATUS_NEEDS_HUMAN, 5004),
    REASONS.Value("ERROR_REASON_BUDGET_EXCEEDED"): (orders_pb2.TASK_STATUS_NEEDS_HUMAN, 5005),
}


class Refused(Exception):
    def __init__(self, reason: int, *, late: bool) -> None:
        super().__init__(REASONS.Name(reason) if reason in REASONS.values() else str(reason))
        self.reason, self.late = reason, late


class LeaseLost(Exception):
    pass


def call(method: str, request: Any, until: float = float("inf")) -> Any:
    """Until the gateway has answered; raises Refused, and LeaseLost once it is too late to ask."""
    while True:
        try:
            return getattr(GATEWAY, method)(request, metadata=METADATA, timeout=5)
        except grpc.RpcError as error:
            if (refusal := refusal_of(error)) is not None:
                raise refusal from None
        if FAULT == "renumbers" and method == "ReportOrder":
            request.sequence += 1
        if time.monotonic() > until:
            raise LeaseLost
        time.sleep(0.1)


def refusal_of(error: Any) -> Refused | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            detail = errors_pb2.ErrorDetail()
            Status.FromString(value).details[0].Unpack(detail)
            return Refused(detail.reason, late=detail.recorded_late)
    return None


class Journal:
    def __init__(self) -> None:
        JOURNAL.mkdir(exist_ok=True)
        self._file = JOURNAL / "journal.json"
        self.kept: dict[str, Any] = {"id": secrets.token_hex(12), "tokens": [], "sequence": 0, "unsent": {}, "open": {}}
        if self._file.exists():
            self.kept = json.loads(self._file.read_text())

    def write(self) -> None:
        new = self._file.with_suffix(".new")
        with new.open("w") as file:
            file.write(json.dumps(self.kept))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)


class Lease:
    """Kept by a thread; `ensure` before every write to the site."""

    def __init__(self, lease: pb.Lease) -> None:
        self._request = pb.RenewLeaseRequest(task_id=lease.task_id, lease_token=lease.lease_token, **NAMES)
        self._until = time.monotonic() + lease.acknowledge_within.ToTimedelta().total_seconds()
        self._gone = threading.Event()
        self.ttl = lease.lease_ttl.ToTimedelta().total_seconds()
        if FAULT != "acts-at-once":
            self._renew()
        threading.Thread(target=self._keep, daemon=True).start()

    def ensure(self) -> None:
        if (self._gone.is_set() or time.monotonic() > self._until) and FAULT != "keeps-a-lost-lease":
            raise LeaseLost

    def release(self) -> None:
        self._gone.set()

    def _renew(self) -> None:
        while True:
            sent = time.monotonic()
            try:
                GATEWAY.RenewLease(self._request, metadata=METADATA, timeout=5)
            except grpc.RpcError as error:
                if refusal_of(error) is not None or time.monotonic() > self._until:
                    self._gone.set()
                    raise LeaseLost from None
                time.sleep(0.1)
            else:
                self._until = sent + self.ttl * 0.9
                return

    def _keep(self) -> None:
        try:
            if FAULT == "acts-at-once":
                self._renew()
            while not self._gone.wait(min(60, self.ttl / 3)):
                self._renew()
        except LeaseLost:
            pass


class Run:
    def __init__(self, journal: Journal, lease: pb.Lease) -> None:
        self.journal, self.lease = journal, lease
        self.shop = httpx.Client(base_url=SHOP, timeout=30, trust_env=False)
        self.state = CREATED

    def report(self, state: int, **fields: Any) -> None:
        self.state = state
        kept = self.journal.kept
        kept["sequence"] += 1
        request = pb.ReportOrderRequest(
            task_id=self.lease.task_id, lease_token=self.lease.lease_token, sequence=kept["sequence"],
            state=state, **NAMES, **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        kept["unsent"][self.lease.task_id] = request.SerializeToString().hex()
        self.journal.write()
        send(self.journal, request)

    def end(self, status: int, code: int = 0, detail: str = "") -> None:
        self.report(
            self.state, terminal=True, terminal_status=status, detail=detail or "see the code",
            error_code=code or None,
        )  # fmt: skip

    def place(self) -> None:
        held = Lease(self.lease)
        try:
            if self.lease.lease_count > 1:
                self.end(orders_pb2.TASK_STATUS_NEEDS_HUMAN, detail="taken before, and nothing is verified here")
                return
            self.buy(held)
        except LeaseLost:
            pass
        finally:
            held.release()

    def buy(self, held: Lease) -> None:
        wanted = json.loads(self.lease.intent_json)
        self.report(CREATED)
        self.shop.post("/login", data={"username": "buyer@sandbox.example", "password": "sandbox"})
        for _ in re.findall('class="remove"', self.shop.get("/cart").text):
            held.ensure()
            self.shop.post("/cart/remove", data={"line": "0"})
        held.ensure()
        code = wanted["item_url"].rstrip("/").rpartition("/")[2]
        self.shop.post("/cart/add", data={"code": code, "quantity": str(wanted["quantity"])})
        token, terms = self.confirm()
        self.report(IN_CART, payable_yen=terms.payable_yen)
        while True:
            sent = time.monotonic()
            request = pb.RequestSubmitPermitRequest(
                task_id=self.lease.task_id, lease_token=self.lease.lease_token, attests_no_click_record=True,
                journal_id=self.journal.kept["id"], terms=terms, **NAMES,
            )  # fmt: skip
            try:
                permit = call("RequestSubmitPermit", request, until=sent + 20)
                break
            except Refused as refusal:
                if refusal.reason == errors_pb2.ERROR_REASON_DISPATCH_PAUSED:
                    time.sleep(0.2)
                    token, again = self.confirm()
                    if again != terms:
                        self.end(orders_pb2.TASK_STATUS_NEEDS_HUMAN, detail="other terms than before")
                        return
                elif FAULT == "clicks-after-a-refusal":
                    permit = pb.RequestSubmitPermitResponse()
                    permit.valid_for.seconds = 30
                    break
                else:
                    self.not_permitted(refusal.reason)
                    return
        valid = permit.valid_for.ToTimedelta().total_seconds()
        if time.monotonic() > sent + valid and FAULT != "ignores-the-permit-s-time":
            self.end(orders_pb2.TASK_STATUS_NEEDS_HUMAN, detail="the permit ran out")
            return
        held.ensure()
        self.click(token)

    def confirm(self) -> tuple[str, orders_pb2.Terms]:
        page = self.shop.get("/order/confirm?payment_method=card").text
        (payable,) = re.findall('id="payable">([^<]+)<', page)
        terms = orders_pb2.Terms(payable_yen=int(re.sub("[^0-9]", "", payable)))
        terms.items.add(item_url=json.loads(self.lease.intent_json)["item_url"], quantity=1)
        (token,) = re.findall('name="token" value="([^"]+)"', page)
        return token, terms

    def not_permitted(self, reason: int) -> None:
        if reason == errors_pb2.ERROR_REASON_LEASE_INVALID:
            raise LeaseLost
        if reason == errors_pb2.ERROR_REASON_PERMIT_DRY_RUN:
            self.shop.post("/cart/remove", data={"line": "0"})
            self.end(orders_pb2.TASK_STATUS_SUCCEEDED, detail="dry run")
            return
        self.end(*ENDS.get(reason, (orders_pb2.TASK_STATUS_NEEDS_HUMAN, 0)))

    def click(self, token: str) -> None:
        (JOURNAL / f"{self.lease.task_id}.click").touch(exist_ok=False)
        to = self.shop.post("/order/submit", data={"token": token}).headers["location"]
        number = to.partition("order_number=")[2]
        self.report(ORDERED, site_order_id=number)
        self.shop.post("/payment", data={"order_number": number})
        self.report(PAID, site_order_id=number, terminal=True)


def send(journal: Journal, request: pb.ReportOrderRequest) -> None:
    try:
        call("ReportOrder", request)
    except Refused as refusal:
        if not refusal.late:
            raise
    journal.kept["sequence"] = max(journal.kept["sequence"], request.sequence)
    del journal.kept["unsent"][request.task_id]
    journal.write()


def main() -> None:
    journal = Journal()
    session = secrets.token_hex(12)
    journal.write()
    for unsent in list(journal.kept["unsent"].values()):
        send(journal, pb.ReportOrderRequest.FromString(bytes.fromhex(unsent)))
    while True:
        request = pb.LeaseOrdersRequest(
            session_id=session, journal_id=journal.kept["id"], sites=["sandbox"], accounts=[""], **NAMES
        )
        request.wait.seconds = 30
        try:
            for message in GATEWAY.LeaseOrders(request, metadata=METADATA, timeout=60):
                if message.HasField("lease"):
                    lease = message.lease
                    if lease.lease_token not in journal.kept["tokens"] and lease.account in request.accounts:
                        journal.kept["tokens"].append(lease.lease_token)
                        journal.write()
                        Run(journal, lease).place()
                    break
        except LeaseLost:
            pass
        except grpc.RpcError:
            time.sleep(0.1)


main()
