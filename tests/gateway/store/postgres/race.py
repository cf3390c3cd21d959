"""One gateway of a race: random use cases against the others, as fast as it can. Prints what it acknowledged."""

import asyncio
import json
import random
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

from gateway.clock import system_time
from gateway.domain.leases import Holder, LeaseRequest, PermitRequest, Via
from gateway.domain.models import Actor, LeaseScope, NewReport, Submission
from gateway.domain.refusals import Refusal
from gateway.domain.states import OrderState
from gateway.operations.actions import expire_now, requeue, withdraw
from gateway.orders.cancel import cancel
from gateway.orders.expire import expire_due
from gateway.orders.hold import renew
from gateway.orders.lease import open_lease, reclaim, undo_lease
from gateway.orders.permit import request_permit
from gateway.orders.report import report
from gateway.orders.submit import submit
from gateway.store.postgres import statements
from gateway.store.postgres.engine import PostgresStore, open_database
from gateway.store.postgres.service_clock import Machine
from tests.gateway.support.book import LOOK, POLICY

PERMIT_TTL = timedelta(milliseconds=100)
SETTLE = timedelta(milliseconds=250)
CALLERS = 6
KINDS = ("submit", "lease", "lease", "renew", "report", "end", "permit", "permit", "undo", "person")
TASKS = 12


class Race:
    """One gateway, and what was acknowledged to its callers."""

    def __init__(self, store: PostgresStore, seed: int, slots: int) -> None:
        self.store = store
        self.chance = random.Random(seed)  # noqa: S311 - a race is known by its seed
        self.policy = replace(
            POLICY,
            sites=("rakuten",),
            scope=LeaseScope.GLOBAL if slots == 1 else LeaseScope.ACCOUNT,
            lease_ttl=timedelta(milliseconds=400),
            acknowledge_within=timedelta(milliseconds=200),
            permit_ttl=PERMIT_TTL,
            permit_settle=SETTLE,
        )
        self.accounts = ("",) if slots == 1 else tuple(f"a{number}" for number in range(slots))
        self.numbers = count()
        self.seed = seed
        self.told: dict[str, list[Any]] = {"submitted": [], "leased": [], "permitted": [], "ended": []}
        self.recent: list[str] = []
        self.faults: dict[str, int] = {}
        self.operations = 0

    async def call(self, until: float) -> None:
        """One caller: files orders, takes them, does with its lease whatever comes to its mind."""
        loop = asyncio.get_running_loop()
        lease: Any = None
        while loop.time() < until:
            try:
                lease = await self.step(lease)
            except Exception as error:  # noqa: BLE001 - it is counted
                name = f"{type(error).__name__}: {error}"[:120]
                self.faults[name] = self.faults.get(name, 0) + 1
            self.operations += 1

    async def step(self, lease: Any) -> Any:
        chance, write, actor = self.chance, self.store.write, Actor("worker")
        kind = chance.choice(KINDS)
        if kind == "submit":
            account = chance.choice(self.accounts)
            task_id = f"po-{chance.randrange(100_000)}-{account}"
            done = await write(submit, self.policy, Submission(task_id, "rakuten", "{}", None, account=account), actor)
            if not isinstance(done, Refusal) and done.created:
                self.told["submitted"].append(task_id)
                self.recent = [*self.recent[-TASKS:], task_id]
        elif kind == "lease":
            lease = await self.take(lease)
        elif kind == "person":
            await self.decide(chance.choice(self.recent or ["po-none"]))
        elif lease is not None:
            await self.hold(kind, lease)
            if kind in ("end", "undo"):
                lease = None
        return lease

    async def take(self, lease: Any) -> Any:
        number = next(self.numbers)
        token = f"token-{self.seed}-{number:035d}"
        session = f"session-{self.seed}-{number:016d}"
        request = LeaseRequest(
            "w1", session, "journal-of-worker-1", ("rakuten",), Via.GRPC, "worker", accounts=self.accounts
        )
        if lease is not None and self.chance.random() < 0.3:
            taken: Any = await self.store.write(reclaim, self.policy, lease.task_id, request, token)
        else:
            taken = await self.store.write(open_lease, self.policy, request, token)
        if taken is None or isinstance(taken, Refusal):
            return lease
        self.told["leased"].append([taken.task_id, token])
        return taken

    async def hold(self, kind: str, lease: Any) -> None:
        write, holder = self.store.write, Holder(lease.task_id, "w1", lease.token, "worker")
        if kind == "renew":
            await write(renew, self.policy, holder, False)
        elif kind == "undo":
            await write(undo_lease, lease.task_id, lease.token, Actor("gateway"))
        elif kind == "permit":
            await write(renew, self.policy, holder, False)
            done = await write(request_permit, self.policy, PermitRequest(holder, "journal-of-worker-1", True, LOOK))
            if not isinstance(done, Refusal):
                self.told["permitted"].append([lease.task_id, lease.token])
        else:
            state, ends = (OrderState.PAID, True) if kind == "end" else (OrderState.IN_CART, False)
            new = NewReport(state, None, None, None, None, "", None, self.chance.randrange(1, 9), ends, None)
            done = await write(report, holder, new)
            if ends and not isinstance(done, Refusal) and done.recorded:
                self.told["ended"].append(lease.task_id)

    async def decide(self, task_id: str) -> None:
        write, person = self.store.write, Actor("operator")
        what = self.chance.choice((cancel, requeue, withdraw, expire_now, expire_due))
        if what is expire_due:
            await write(expire_due)
        else:
            await write(what, task_id, "a race", person)


def without_the_lock() -> None:
    """The mutant: nobody waits for anybody."""
    found = statements.statements()
    free = statements.numbered("writer_lock", "SELECT 1")
    statements.statements = lambda: {**found, "writer_lock": free}  # type: ignore[assignment]
    from gateway.store.postgres import connection  # noqa: PLC0415

    connection.statements = statements.statements


async def main(url: str, seconds: float, seed: int, slots: int) -> None:
    """Race, and tell."""
    clocks = system_time()
    database = open_database(url, Machine(clocks.boot_id, clocks.boot_us), wait_seconds=0)
    store = PostgresStore(database, lambda _: None, lambda error: sys.exit(str(error)))
    race = Race(store, seed, slots)
    until = asyncio.get_running_loop().time() + seconds
    await asyncio.gather(*(race.call(until) for _ in range(CALLERS)))
    await store.close()
    print(json.dumps({"told": race.told, "faults": race.faults, "operations": race.operations}))  # noqa: T201 - its result


if __name__ == "__main__":
    if sys.argv[5:] == ["without-the-lock"]:
        without_the_lock()
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
