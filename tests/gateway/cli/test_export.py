"""Tasks found and exported by commands: the conditions, the two forms, and what a spreadsheet must not calculate."""

import asyncio
import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.domain.states import OrderState
from gateway.spreadsheets.safe_csv import _safe
from tests.gateway.cli.command import WHY, Commands
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.in_process import RunningGateway

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_the_conditions_narrow_the_list(api: GrpcApi, commands: Commands, gateway: RunningGateway) -> None:
    for number in range(4):
        await api.submit(f"po-{number}", site="sandbox", labels={"team": "ab"[number % 2], "n": "=" * number})
        gateway.time.advance(3600)
    await api.cancel("po-3")
    await api.submit("po-4")
    assert await api.lease(sites=("rakuten",)) is not None
    await commands.ok("expire", "po-4", *WHY)

    async def listed(*words: str) -> list[str]:
        return [task["task_id"] for task in (await commands.ok("tasks", "list", "--json", *words)).json["tasks"]]

    filed = (await api.task("po-2")).created_at.ToJsonString()
    assert await listed("--status", "failed", "--status", "stale") == ["po-4", "po-3"]
    assert await listed("--label", "team=b") == ["po-3", "po-1"]
    assert await listed("--label", "team=b", "--label", "n==") == ["po-1"]
    assert await listed("--needs-decision") == ["po-4"]
    assert await listed("--created-from", filed) == ["po-4", "po-3", "po-2"]
    assert await listed("--created-to", filed, "--oldest-first") == ["po-0", "po-1"]
    assert await listed("--updated-from", filed, "--limit", "1") == ["po-4"]
    assert await listed("--prefix", "po-", "--text", "-2") == ["po-2"]
    assert await listed("--order-number", "A-1") == []
    for words, says in (
        (("--label", "team"), "is no label"),
        (("--created-from", "yesterday"), "is no time"),
        (("--status", "done"), "is not one of"),
        (("--text", "a b"), "task_id_contains"),
    ):
        ran = await commands.run("tasks", "list", *words)
        assert (ran.code, says in ran.err) == (2, True), ran


async def test_what_begins_like_a_formula_is_no_formula_in_the_csv(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take("po-0")
    await api.report(
        lease,
        OrderState.ORDERED,
        payable_yen=980,
        site_order_id="=cmd|'/c calc'!A1",
        evidence_ref="po-0/04",
        terminal=True,
    )
    await api.submit("po-1", '{"b": 1.0, "text": "a,\\"b\\"\\nc"}', labels={"k": "=1+1", "a": 'é,"\n'})
    ran = await commands.ok("tasks", "export", "--format", "csv")
    second, first = table(ran.out)
    assert first["site_order_id"] == "'=cmd|'/c calc'!A1"
    assert (first["payable_yen"], first["latest_state"], first["placement"]) == ("980", "ordered", "certain")
    assert second["intent"] == '{"b": 1.0, "text": "a,\\"b\\"\\nc"}'
    assert json.loads(second["labels"]) == {"k": "=1+1", "a": 'é,"\n'}
    assert datetime.fromisoformat(second["created_at"]) == (await api.task("po-1")).created_at.ToDatetime(UTC)
    assert not any(cell.startswith(FORMULAS) for row in (first, second) for cell in row.values())


@pytest.mark.parametrize("beginning", FORMULAS)
def test_each_beginning_of_a_formula_gets_an_apostrophe(beginning: str) -> None:
    assert _safe(beginning) == f"'{beginning}"
    assert _safe(f"\0{beginning}") == f"'{beginning}"
    assert _safe(f"a{beginning}") == f"a{beginning}"


async def test_json_lines_are_the_contract_s_exactly(api: GrpcApi, commands: Commands, tmp_path: Path) -> None:
    for number in range(3):
        await api.submit(f"po-{number}", labels={"k": "=1\u2028"})
    path = tmp_path / "tasks.jsonl"
    ran = await commands.ok("tasks", "export", "--format", "jsonl", "--output", str(path), "--oldest-first")
    assert ran.out == ""
    lines = path.read_text().splitlines()
    assert [json.loads(line)["task_id"] for line in lines] == ["po-0", "po-1", "po-2"]
    assert all(json.loads(line)["labels"] == {"k": "=1\u2028"} for line in lines)
    listed = (await commands.ok("tasks", "list", "--json", "--oldest-first")).json["tasks"]
    assert [json.loads(line) for line in lines] == listed
    again = await commands.run("tasks", "export", "--format", "jsonl", "--output", str(path))
    assert (again.code, "File exists" in again.err) == (2, True)
    assert path.read_text().splitlines() == lines


async def test_an_export_reads_page_by_page_to_the_end(api: GrpcApi, commands: Commands) -> None:
    await asyncio.gather(*(api.submit(f"po-{number:03}") for number in range(450)))
    rows = table((await commands.ok("tasks", "export", "--format", "csv")).out)
    assert sorted(row["task_id"] for row in rows) == [f"po-{number:03}" for number in range(450)]
    few = table((await commands.ok("tasks", "export", "--format", "csv", "--limit", "201")).out)
    assert few == rows[:201]
    assert table((await commands.ok("tasks", "export", "--format", "csv", "--text", "449")).out) == [
        row for row in rows if row["task_id"] == "po-449"
    ]
