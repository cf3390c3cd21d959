"""The statement of a day, the same on every transport, and as a command."""

import csv
import io
from typing import Any

import pytest

from common.exit_codes import Exit
from gateway.domain.states import OrderState
from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.cli.command import Commands
from tests.gateway.support.in_process import RunningGateway

DAY = {"day": "2026-11-30", "time_zone": "Asia/Tokyo"}
RPC = "OperationsService/ListStatement"


async def ask(transport: str, made: Clients, **fields: Any) -> tuple[list[tuple[Any, ...]], dict[str, int], str]:
    """Return task, order numbers, yen and who decided for each line, the sums, and the token of the next page."""
    if transport == "rest":
        size = fields.pop("page_size", None)
        told = await made.rest("GET", "/api/statement", **fields, **({} if size is None else {"limit": size}))
        assert (told["time_zone"], told["starts_at"]) == ("Asia/Tokyo", "2026-11-29T15:00:00.000000Z")
        lines = [
            (each["task_id"], each["site_order_ids"], each["yen"], [one["decided_by"] for one in each["decisions"]])
            for each in told["items"]
        ]
        return lines, {name: value for name, value in told["totals"].items() if value}, told["next_page_token"] or ""
    answer = await getattr(made, transport)(RPC, **fields)
    assert (answer.time_zone, answer.starts_at.ToJsonString()) == ("Asia/Tokyo", "2026-11-29T15:00:00Z")
    lines = [
        (
            each.task_id,
            list(each.site_order_ids),
            each.yen if each.HasField("yen") else None,
            [one.decided_by for one in each.decisions],
        )
        for each in answer.lines
    ]
    return lines, {field.name: value for field, value in answer.totals.ListFields()}, answer.next_page_token


async def fill(gateway: RunningGateway) -> None:
    """Three tasks of the day: one ordered, one that a person took back, one that nobody has taken."""
    api = gateway.api
    lease = await api.take("po-1")
    await api.permit(lease)
    await api.report(lease, state=OrderState.ORDERED, site_order_id="R-1", payable_yen=2_900, sequence=1)
    await api.submit("po-2", "{}")
    await api.cancel("po-2", "=not wanted")
    await api.submit("po-3")


LINES = [("po-1", ["R-1"], 2_900, []), ("po-2", [], None, ["anonymous"]), ("po-3", [], None, [])]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_day(gateway: RunningGateway, transport: str) -> None:
    await fill(gateway)
    async with clients(gateway.port, gateway.http_port) as made:
        lines, totals, more = await ask(transport, made, **DAY)
        assert (lines, more) == (LINES, "")
        assert totals == {"tasks": 3, "ordered": 1, "ordered_yen": 2_900}
        first, _, more = await ask(transport, made, **DAY, page_size=2)
        rest, totals, end = await ask(transport, made, **DAY, page_size=2, page_token=more)
        assert (first + rest, totals, end) == (LINES, {"tasks": 1}, "")
        default, _, _ = await ask(transport, made, day=DAY["day"])
        assert default == LINES
        for wrong, says in (
            ({"day": "2026-11-31"}, "day"),
            ({"day": "2026-1-1"}, "day"),
            ({"day": "3000-01-01"}, "day"),
            ({"day": ""}, "day"),
            ({"time_zone": "Asia/Nowhere"}, "time_zone: must be a time zone by its IANA name"),
            ({"time_zone": "../etc/passwd"}, "time_zone"),
            ({"page_token": "x"}, "page_token"),
            ({"day": "2026-11-29", "page_token": more}, "page_token"),
        ):
            with pytest.raises(RefusedError, match=says) as refused:
                await ask(transport, made, **(DAY | wrong))
            assert refused.value.code == 422, wrong


async def test_the_command(gateway: RunningGateway, commands: Commands) -> None:
    await fill(gateway)
    words = ("statement", "--day", "2026-11-30", "--zone", "Asia/Tokyo")
    shown = (await commands.ok(*words)).out
    assert "R-1" in shown
    assert "cancel by anonymous" in shown
    assert "3 tasks: 1 ordered for 2,900 yen" in shown
    whole = (await commands.ok(*words, "--json")).json
    assert [each["task_id"] for each in whole["lines"]] == ["po-1", "po-2", "po-3"]
    assert whole["totals"]["ordered_yen"] == "2900"
    rows = list(csv.DictReader(io.StringIO((await commands.ok(*words, "--csv")).out, newline="")))
    assert [(row["task_id"], row["yen"], row["site_order_ids"]) for row in rows] == [
        ("po-1", "2900", "R-1"), ("po-2", "", ""), ("po-3", "", ""),
    ]  # fmt: skip
    assert "nothing was filed on 2026-11-29" in (await commands.ok("statement", "--day", "2026-11-29")).out
    assert (await commands.run(*words, "--csv", "--json")).code == Exit.USAGE
    assert (await commands.run("statement", "--day", "today")).code == Exit.USAGE
