"""What the pages show, and what they let a person do."""

from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from gateway.domain.states import OrderState
from tests.gateway.console.browser import OPERATOR, console, offered, text_of, visitor


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
        assert "order-worker evidence serve po-1" in text_of(page, "article"), "where one decides"

        await alice.send(page, "resolve_succeeded", reason="seen on the site", site_order_id="n-1")
        assert await gateway.api.status("po-1") == "succeeded"
        [event] = gateway.rows("SELECT * FROM events WHERE kind = 'resolve'")
        assert (event["actor"], event["reason"]) == ("alice", "seen on the site")
        shown = await alice.page("/console/tasks/po-1")
        assert "An order is certain" in text_of(shown)
        assert offered(shown) == ["resolve_succeeded"], "a statement can be revised"


async def test_what_one_proposes_another_confirms(tmp_path: Path) -> None:
    tokens = (OPERATOR, "bob=the-token-of-bobby")
    async with console(tmp_path, operator_token=tokens, second_person=True) as (gateway, alice):
        await gateway.api.submit("po-1", requires_approval=True, max_total_yen=500_000)
        shown = await alice.page("/console/tasks/po-1")
        done = await alice.send(shown, "approve", max_total_yen="200,000", reason="for the <b>fair</b>")
        page = LexborHTMLParser(done.text)
        told = text_of(page, "#proposal-1")
        assert "Waits for a second person. alice: Approve · ¥200,000" in told
        assert "for the <b>fair</b>" in told
        assert "confirm_proposal" not in offered(page), "not by who proposed it"
        assert "withdraw_proposal" in offered(page)
        assert gateway.rows("SELECT * FROM approvals") == []
        async with visitor(gateway) as bob:
            await bob.sign_in("the-token-of-bobby")
            await bob.send(await bob.page(), "confirm_proposal", reason="agreed")
        [approval] = gateway.rows("SELECT decided_by, max_total_yen FROM approvals")
        assert dict(approval) == {"decided_by": "alice", "max_total_yen": 200_000}
        assert (await alice.page("/console/tasks/po-1")).css_first("#proposal-1") is None


async def test_a_number_that_no_worker_told_is_refused_with_why_and_what_was_typed(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        for task_id in ("po-2", "po-1"):
            lease = await gateway.api.take(task_id)
            await gateway.api.permit(lease)
            await gateway.api.report(lease, OrderState.ORDERED, site_order_id="266-1", terminal=True)
        shown = await alice.page("/console/tasks/po-1")
        assert "order-worker evidence serve po-1" in text_of(shown, ".case")
        assert "A worker told of 266-1; another one is not taken." in text_of(shown, ".case")
        answer = await alice.send(shown, "resolve_succeeded", reason="it is the next one", site_order_id="266-2")
        assert answer.status_code == 422
        refused = LexborHTMLParser(answer.text)
        assert "266-2 is not what was told of task po-1 (266-1)" in text_of(refused, "[role=alert]")
        number, reason = refused.css_first("[name=site_order_id]"), refused.css_first("[name=reason]")
        assert number is not None
        assert reason is not None
        assert (number.attributes["value"], reason.text()) == ("266-2", "it is the next one")
        assert await gateway.api.status("po-1") == "needs_human"

        done = await alice.send(refused, "resolve_succeeded", reason="it is the next one", site_order_id="266-1")
        assert done.status_code == 200, done.text
        assert await gateway.api.status("po-1") == "succeeded"


async def test_a_number_that_a_person_stated_is_replaced(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        lease = await gateway.api.take("po-1")
        await gateway.api.permit(lease)
        await gateway.api.report(lease, OrderState.IN_CART, terminal=True)
        for number in ("266-1", "266-2"):
            await alice.act("/console/tasks/po-1", "resolve_succeeded", reason="read there", site_order_id=number)
            shown = await alice.page("/console/tasks/po-1")
            assert "another one is not taken" not in text_of(shown)
        told = gateway.rows("SELECT site_order_id FROM order_numbers")
        assert [row["site_order_id"] for row in told] == ["266-2"]
