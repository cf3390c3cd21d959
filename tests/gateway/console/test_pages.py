"""What the pages show, and what they let a person do."""

from pathlib import Path

from tests.gateway.console.browser import console, offered, text_of


async def test_nothing_waits(tmp_path: Path) -> None:
    async with console(tmp_path) as (_, alice):
        assert "Nothing waits for a person." in text_of(await alice.page())


async def test_a_stale_task_is_understood_and_resolved(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        await gateway.api.submit("po-1")
        lease = await gateway.api.lease()
        await gateway.api.renew(lease)
        await gateway.api.permit(lease)
        shown = await alice.page("/console/tasks/po-1")
        assert offered(shown) == ["expire"]
        done = await alice.send(shown, "expire", reason="its machine is off")
        assert done.status_code == 200, done.text

        page = await alice.page()
        told = text_of(page, "article")
        assert "An order is possible: a submit permit was granted to w1" in told
        assert "possible" in text_of(page, ".placement")
        assert offered(page) == ["resolve_succeeded", "requeue"]
        assert "Possible in" in text_of(page, ".refused")

        await alice.send(page, "resolve_succeeded", reason="seen on the site", site_order_id="n-1")
        assert await gateway.api.status("po-1") == "succeeded"
        [event] = gateway.rows("SELECT * FROM events WHERE kind = 'resolve'")
        assert (event["actor"], event["reason"]) == ("alice", "seen on the site")
        shown = await alice.page("/console/tasks/po-1")
        assert "An order is certain" in text_of(shown)
        assert offered(shown) == ["resolve_succeeded"], "a statement can be revised"
