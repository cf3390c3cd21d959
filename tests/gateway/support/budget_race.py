"""Races of two permits for the last yen of a budget, by two workers over sockets, at one gateway or at two."""

import asyncio
from collections import Counter

from ordergateway.v1 import order_leases_pb2

from gateway.api.codec.terms import terms_message
from gateway.domain.refusals import Reason
from tests.gateway.support.book import terms
from tests.gateway.support.budgets import get_budget, remove_budget, set_budget
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError

YEN = 10_000
CONTESTED = ((YEN, YEN), (YEN // 2 + 1, YEN // 2), (YEN, 1))
TOGETHER = (YEN // 2, YEN // 2)
"""What the two want to pay: more than there is by a yen at least, or all of it to the yen."""


async def race(first: GrpcApi, second: GrpcApi, rounds: int) -> None:
    """Let two workers race; each round has a budget of its own, of which nothing is used. Each has a slot."""
    winners = Counter[str]()
    for number in range(rounds):
        name, amounts = f"round-{number}", TOGETHER if number % 4 == 3 else CONTESTED[number % 4]
        await set_budget(first, name, YEN)
        leases = [
            await _take(first, f"a-{number}", "w1", "rakuten"),
            await _take(second, f"b-{number}", "w2", "sandbox"),
        ]
        rivals = [
            api.permit(lease, worker, terms=terms_message(terms(yen)))
            for api, lease, worker, yen in zip((first, second), leases, ("w1", "w2"), amounts, strict=True)
        ]
        order = 1 if number % 2 else -1
        outcomes = (await asyncio.gather(*rivals[::order], return_exceptions=True))[::order]
        refused = [outcome for outcome in outcomes if isinstance(outcome, RefusedCallError)]
        granted = [yen for outcome, yen in zip(outcomes, amounts, strict=True) if outcome not in refused]
        assert [refusal.reason for refusal in refused] == [Reason.BUDGET_EXCEEDED] * len(refused)
        assert len(granted) == (2 if amounts == TOGETHER else 1), (amounts, outcomes)
        shown = await get_budget(second, name)
        assert shown.budget.reserved_yen == sum(granted) == YEN - shown.budget.left_yen <= YEN
        assert len(shown.entries) == len(granted)
        winners["both" if not refused else "first" if isinstance(outcomes[1], RefusedCallError) else "second"] += 1
        await first.report(leases[0], terminal=True)
        await second.report(leases[1], worker_id="w2", terminal=True)
        await remove_budget(second, name)
    assert winners["both"] == rounds // 4
    assert min(winners["first"], winners["second"]) > 0, winners


async def _take(api: GrpcApi, task_id: str, worker: str, site: str) -> order_leases_pb2.Lease:
    await api.submit(task_id, site=site)
    lease = await api.lease(worker, sites=(site,))
    assert lease is not None
    await api.renew(lease, worker)
    return lease
