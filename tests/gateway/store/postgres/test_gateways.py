"""Each gateway of a database tells how it is, and any of them tells how all are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.domain.health import GatewaySeen, GatewaysSeen, Problem, ProblemKind
from gateway.domain.instant import MICROSECONDS, Instant
from gateway.operations.gateways import problems_of_gateways
from gateway.store.postgres import sharing
from gateway.store.postgres.gateways import FORGOTTEN_SECONDS, GONE_SECONDS, Hearing, SharedGateways
from tests.gateway.store.postgres.conftest import Gateways
from tests.gateway.support import postgres
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

pytestmark = pytest.mark.needs("postgresql")

DEAF = Problem(ProblemKind.NOTIFICATIONS_LOST, "it is deaf")


def fellow(gateway_id: str, name: str, unheard: float = 0) -> SharedGateways:
    return SharedGateways(gateway_id, name, {"SITES": "rakuten"}, lambda: unheard)


class Told:
    """Two gateways in one database, whose clock the test moves."""

    def __init__(self, gateways: Gateways) -> None:
        self._store = gateways().store
        self.a, self.b = fellow("id-a", "a"), fellow("id-b", "b")
        self._later_us = 0

    def pass_(self, seconds: float) -> None:
        self._later_us += int(seconds * MICROSECONDS)

    async def write(self, operation: Any, *args: Any) -> Any:
        return await self._store.write(lambda tx, now: operation(tx, self._moved(now), *args))

    async def seen(self, by: SharedGateways) -> GatewaysSeen:
        return await self._store.read(lambda tx, now: by.seen(tx, self._moved(now), 0, ()))

    async def b_as_seen(self) -> GatewaySeen | None:
        return next((one for one in (await self.seen(self.a)).gateways if one.name == "b"), None)

    def _moved(self, now: Instant) -> Instant:
        return Instant(now.utc, now.elapsed_us + self._later_us)


@pytest.fixture
async def told(gateways: Gateways) -> Told:
    made = Told(gateways)
    for gateway in (made.a, made.b):
        assert await made.write(gateway.join) is None
    return made


async def test_a_gateway_tells_how_it_is_and_counts_as_gone_after_its_silence(told: Told) -> None:
    await told.write(told.b.tell, 7, (DEAF,))
    seen = await told.b_as_seen()
    assert seen is not None
    assert (seen.waiting, seen.problems, seen.gone, seen.here) == (7, (DEAF,), False, False)
    assert [one.name for one in (await told.seen(told.a)).gateways if one.here] == ["a"]
    told.pass_(GONE_SECONDS - 1)
    assert (seen := await told.b_as_seen()) is not None
    assert not seen.gone
    told.pass_(2)
    assert (seen := await told.b_as_seen()) is not None
    assert seen.gone
    (problem,) = problems_of_gateways(await told.seen(told.a))
    assert (problem.kind, problem.message.startswith("gateway b has not been heard of for 3")) == ("gateway_gone", True)


async def test_one_that_died_is_listed_for_a_day_and_one_that_signs_off_no_more(told: Told) -> None:
    told.pass_(FORGOTTEN_SECONDS - 10)
    await told.write(told.a.tell, 0, ())
    assert await told.b_as_seen() is not None
    told.pass_(20)
    await told.write(told.a.tell, 0, ())
    assert await told.b_as_seen() is None
    await told.write(told.b.tell, 0, ())
    assert await told.b_as_seen() is not None, "it was frozen and lives after all"
    await told.write(sharing.leave, "id-b")
    assert await told.b_as_seen() is None


async def test_one_that_starts_again_under_its_name_takes_the_place_of_the_dead_one(told: Told) -> None:
    again = fellow("id-b-again", "b")
    await told.write(again.join)
    assert [one.name for one in (await told.seen(told.a)).gateways] == ["a", "b", "b"], "the former one may live"
    told.pass_(GONE_SECONDS + 1)
    await told.write(again.tell, 0, ())
    await told.write(told.a.tell, 0, ())
    seen = await told.b_as_seen()
    assert seen is not None
    assert (seen.gateway_id, seen.gone) == ("id-b-again", False)


async def test_who_leads_and_for_how_long_nobody_has(told: Told) -> None:
    assert await told.write(sharing.take_term, "id-b")
    found = await told.seen(told.a)
    assert ([one.leads for one in found.gateways], found.leaderless_for.total_seconds()) == ([False, True], 0)
    told.pass_(sharing.TERM_SECONDS + 50)
    assert 50 <= (await told.seen(told.a)).leaderless_for.total_seconds() < 60
    told.pass_(15)
    kinds = [problem.kind for problem in problems_of_gateways(await told.seen(told.a))]
    assert kinds == [ProblemKind.GATEWAY_GONE, ProblemKind.NO_LEADER]
    assert await told.write(sharing.take_term, "id-a")
    await told.write(sharing.leave, "id-a")
    assert (await told.seen(told.a)).leaderless_for.total_seconds() < 10, "since it has left"


async def test_a_gateway_of_the_version_before_is_listed_without_a_sign(told: Told, url: str) -> None:
    insert = "INSERT INTO gateways (gateway_id, started_at, settings_json) VALUES ('old', '{}', '{{}}')"
    postgres.server().execute(insert.format("9999-12-31T00:00:00.000000Z"), postgres.name_of(url))
    await told.write(told.a.tell, 0, ())
    (old,) = [one for one in (await told.seen(told.a)).gateways if one.gateway_id == "old"]
    assert (old.silent_for, old.last_seen_at, old.gone) == (None, None, False)
    postgres.server().execute("UPDATE gateways SET started_at = '2020' WHERE name = ''", postgres.name_of(url))
    await told.write(told.a.tell, 0, ())
    assert "old" not in [one.gateway_id for one in (await told.seen(told.a)).gateways]


def test_what_is_not_heard_is_a_problem_after_a_while() -> None:
    hearing = Hearing()
    assert hearing.unheard_for() < 1, "it has just begun"
    hearing.begins()
    assert hearing.unheard_for() == 0
    assert fellow("id", "a", unheard=9.9).problems() == ()
    assert [problem.kind for problem in fellow("id", "a", unheard=10).problems()] == [ProblemKind.NOTIFICATIONS_LOST]


@pytest.fixture
async def pair(url: str, tmp_path: Path, time: ManualTime) -> AsyncIterator[tuple[RunningGateway, RunningGateway]]:
    async with (
        running_gateway(tmp_path / "a", time, gateway_db_url=url, gateway_name="a") as a,
        running_gateway(tmp_path / "b", time, gateway_db_url=url, gateway_name="b") as b,
    ):
        yield a, b


async def test_any_gateway_tells_of_all_over_rest_with_where_a_worker_waits(
    pair: tuple[RunningGateway, RunningGateway],
) -> None:
    a, b = pair
    waiting = b.api.stream("w1", 60)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{a.http_port}", trust_env=False) as client:
        async with asyncio.timeout(60):
            while True:
                found = (await client.get("/health")).json()["data"]
                by_name = {one["name"]: one for one in found["gateways"]}
                leading = [name for name, one in by_name.items() if one["leads"]]
                if by_name["b"]["waiting_count"] == 1 and leading and found["workers"][0]["gateway"] == "b":
                    break
                await asyncio.sleep(0.2)
        assert [(name, one["answers"]) for name, one in by_name.items()] == [("a", True), ("b", False)]
        assert len(leading) == 1
        assert found["status"] == "ok"
        page = (await client.get("/metrics")).text
    waiting.cancel()
    assert 'ordergateway_gateway_info{gateway="a"} 1.0' in page
    assert 'ordergateway_gateways{state="living"} 2.0' in page
    assert f"ordergateway_leads {float(leading == ['a'])}" in page
    b.stop.set()
    await b.ended
    assert [one.name for one in (await a.api.health()).gateways] == ["a"], "it has signed off"
