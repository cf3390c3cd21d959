"""What every client of these examples shows, by the library: `python checks.py blocking`, or `asyncio`.

Where gateway and shop are, the environment says (`clients/stage.py`).
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ordergateway.client import (
    AsyncClient,
    Client,
    DeadlineExceededError,
    GatewayError,
    InvalidFieldError,
    NotFoundError,
    Tls,
    UnauthenticatedError,
    order,
)
from ordergateway.v1 import errors_pb2, orders_pb2

QUEUE = "rakuten"
"""A site that no worker serves here: what is filed there stays queued."""


class Awaited:
    """An AsyncClient whose methods a blocking program calls: each runs the loop until it is done."""

    def __init__(self, runner: asyncio.Runner, url: str, token: str, **settings: Any) -> None:
        self._runner = runner
        self._client = runner.run(self._made(url, token, **settings))

    async def _made(self, url: str, token: str, **settings: Any) -> AsyncClient:
        return AsyncClient(url, token, **settings)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def run(*words: Any, **named: Any) -> Any:
            begun = method(*words, **named)
            return self._runner.run(_all(begun) if hasattr(begun, "__aiter__") else begun)

        return run


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


class Checks:
    """Counts what was found right, and keeps what was not."""

    def __init__(self, connect: Callable[..., Any], name: str) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self._connect = connect
        self._name = name
        self._gateway: Client = self.client("grpc://", "GRPC")

    def client(self, scheme: str, variable: str, token: str = "", **settings: Any) -> Any:
        """Return a client of the gateway that a variable names."""
        return self._connect(scheme + setting(variable), token or setting("TOKEN"), **settings)

    def that(self, what: str, holds: bool) -> None:
        """Count one check."""
        if holds:
            self.passed += 1
        else:
            self.failures.append(what)

    def refused(self, what: str, kind: type[GatewayError], call: Callable[[], object]) -> Any:
        """Check that a call ends with such an exception, and return it."""
        try:
            call()
        except kind as error:
            self.that(what, True)
            return error
        self.that(what, False)
        return None

    def submission(self) -> None:
        """File an order, twice and with another intent, and watch it to its end."""
        task_id = f"order-{self._name}"
        item = f"{setting('SHOP')}/item/sandbox-store/sencha-100g/"
        # A number of any size is a Python int, and letters of any language are a str.
        intent = {"item_url": item, "quantity": 1, "max_total_yen": 5000, "reference": 12345678901234567890}
        intent["note"] = "煎茶を一袋"
        self.that("submit: makes a task", self._gateway.submit(task_id, "sandbox", intent, max_total_yen=5000).created)
        again = self._gateway.submit(task_id, "sandbox", intent, max_total_yen=5000)
        self.that("submit again: is the same task", not again.created and not again.differs)
        other = self._gateway.submit(task_id, "sandbox", {})
        self.that("submit another intent: changes nothing, and says so", "intent_json" in other.differs)
        kept = self._gateway.get(task_id)
        self.that(
            "get: 20 digits and Japanese are as they were sent", kept.intent_json == order("", "", intent).intent_json
        )
        *_, last = self._gateway.watch(task_id, timeout=60)
        paid = (orders_pb2.TASK_STATUS_SUCCEEDED, orders_pb2.ORDER_STATE_PAID)
        self.that("watch: ends with the order paid", (last.status, last.latest_state) == paid)

    def lists(self) -> None:
        """File several in one call, one of them malformed, and list them by pages."""
        name = f"list-{self._name}"
        batch = [order(f"{name}-{number}", QUEUE, "{}", labels={"batch": name}) for number in (1, 2, 3)]
        results = list(self._gateway.submit_many([*batch, order(f"{name}-4", QUEUE, "no JSON")]))
        self.that("batch: files three", [each.submitted.created for each in results] == [True, True, True, False])
        self.that("batch: refuses one, and names its field", results[3].refusal.field == "orders[3].intent_json")
        listed = self._gateway.list(orders_pb2.TaskFilter(labels={"batch": name}), page_size=2)
        self.that(
            "list: gives each once, over two pages",
            [task.task_id for task in listed] == [each.task_id for each in reversed(batch)],
        )

    def refusals(self) -> None:
        """Be refused in three ways, and by a deadline."""
        unknown = self.refused("an unknown task", NotFoundError, lambda: self._gateway.get(f"unknown-{self._name}"))
        self.that("an unknown task: has its reason", unknown.reason == errors_pb2.ERROR_REASON_TASK_NOT_FOUND)
        malformed = self.refused(
            "a malformed intent", InvalidFieldError, lambda: self._gateway.submit(f"m-{self._name}", QUEUE, "{")
        )
        self.that("a malformed intent: names the field", list(malformed.violations) == ["intent_json"])
        stranger = self.client("grpc://", "GRPC", "a-token-that-nobody-knows")
        self.refused("a wrong token", UnauthenticatedError, lambda: stranger.get(f"unknown-{self._name}"))
        task_id = f"wait-{self._name}"
        self._gateway.submit(task_id, QUEUE, {})
        self.refused("a deadline", DeadlineExceededError, lambda: list(self._gateway.watch(task_id, timeout=0.3)))

    def lost_answers(self) -> None:
        """Let answers be lost: the library asks again, and the caller does not notice."""
        lossy = self.client("grpc://", "LOSSY_GRPC")
        filed = lossy.submit(f"lost-submit-{self._name}", QUEUE, {})
        self.that("a lost answer: the same task_id makes no second task", not filed.created and not filed.differs)
        task_id = f"lost-watch-{self._name}"
        self._gateway.submit(task_id, QUEUE, {})
        self._gateway.cancel(task_id, "nobody needs it")
        seen = [task.status for task in lossy.watch(task_id, timeout=30)]
        self.that("a lost stream: is watched again, to the end", seen == [orders_pb2.TASK_STATUS_FAILED])

    def over_tls(self) -> None:
        """Call a gateway whose certificate a CA of its own has signed."""
        own = self.client("grpcs://", "TLS_GRPC", tls=Tls(Path(setting("CA")).read_bytes()))
        self.that("TLS: with the CA it is a call as any other", own.submit(f"tls-{self._name}", QUEUE, {}).created)
        strange = self.client("grpcs://", "TLS_GRPC")
        self.refused("TLS: without the CA", DeadlineExceededError, lambda: strange.get("tls", timeout=1))


def setting(name: str) -> str:
    """Return a variable of `clients/stage.py`."""
    return os.environ[f"ORDER_GATEWAY_{name}"]


def ways(kind: str) -> Iterator[Callable[..., Any]]:
    """Yield what makes a client of this kind."""
    if kind == "blocking":
        yield Client
        return
    with asyncio.Runner() as runner:
        yield lambda *words, **settings: Awaited(runner, *words, **settings)


def main() -> int:
    """Run all checks; the exit status is 0 if all hold."""
    kind = sys.argv[1]
    for connect in ways(kind):
        checks = Checks(connect, f"python-{kind}-{time.time_ns()}")
        for part in (checks.submission, checks.lists, checks.refusals, checks.lost_answers, checks.over_tls):
            part()
    for what in checks.failures:
        print(f"failed: {what}")
    print(f"{checks.passed} passed, {len(checks.failures)} failed")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
