"""The statement of a day as a file: what the command writes, to the byte."""

import asyncio
from pathlib import Path

import pytest

from gateway.cli import app
from gateway.domain.states import OrderState
from tests.gateway.cli.command import RUNNER
from tests.gateway.console.browser import SECRET, console, visitor


async def test_the_download_is_what_the_command_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with console(tmp_path, viewer_token=("eve=the-token-of-eve-who-looks",)) as (gateway, alice):
        lease = await gateway.api.take("po-000")
        await gateway.api.permit(lease)
        await gateway.api.report(lease, OrderState.ORDERED, site_order_id="-1+1", terminal=True)
        for number in range(1, 201):
            await gateway.api.submit(f"po-{number:03d}")
        await alice.act("/console/tasks/po-007", "cancel", reason='two, "quoted"\nlines of 注文')
        async with visitor(gateway) as eve:
            await eve.sign_in("the-token-of-eve-who-looks")
            page = await eve.page("/console/statement")
            link, shown = page.css_first("a[download]"), page.css_first("#day")
            assert link is not None
            assert shown is not None
            day = str(shown.attributes["value"])
            answer = await eve.get(str(link.attributes["href"]))
        environment = {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}", "RAKUTEN_API_TOKEN": SECRET}
        ran = await asyncio.to_thread(RUNNER.invoke, app, ["statement", "--day", day, "--csv"], env=environment)
    assert ran.exit_code == 0, ran.stderr
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="statement-{day}.csv"'
    assert answer.content == ran.stdout_bytes
    assert answer.text.count("\r\n") == 202, "two pages under one heading"
    assert ",'-1+1," in answer.text, "no spreadsheet calculates it"


@pytest.mark.parametrize("query", ["day=../../etc/passwd", "day=2026-11-30%22%0d%0aX:y", "zone=../etc/passwd"])
async def test_what_is_no_day_of_a_zone_is_refused(tmp_path: Path, query: str) -> None:
    async with console(tmp_path) as (_, alice):
        answer = await alice.get(f"/console/statement.csv?{query}")
        assert answer.status_code == 422
        assert "content-disposition" not in answer.headers


async def test_nobody_downloads_without_a_session(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), visitor(gateway) as stranger:
        answer = await stranger.get("/console/statement.csv")
        assert answer.url.path == "/console/sign-in"
