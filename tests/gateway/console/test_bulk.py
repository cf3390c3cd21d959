"""One decision about many tasks: as it was shown, by who may, with a second person where it needs one."""

from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from tests.gateway.console.browser import OPERATOR, Visitor, console, text_of, visitor
from tests.gateway.support.in_process import RunningGateway

QUEUED = "/console/bulk?status=queued&decision=cancel"
STALE = "/console/bulk?status=stale&decision=resolve_succeeded"


def filled_in(page: LexborHTMLParser, reason: str) -> dict[str, list[str]]:
    """The form of a preview, with a reason."""
    fields: dict[str, list[str]] = {"reason": [reason]}
    for each in page.css("form[method=post][action='/console/bulk'] input[type=hidden]"):
        fields.setdefault(str(each.attributes["name"]), []).append(str(each.attributes["value"]))
    return fields


async def stale_with_a_permit(gateway: RunningGateway, alice: Visitor) -> None:
    lease = await gateway.api.take("po-1")
    await gateway.api.permit(lease)
    await alice.act("/console/tasks/po-1", "expire", reason="its machine is off")


async def test_what_was_shown_is_decided_and_what_changed_since_is_left(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        for task_id in ("po-1", "po-2", "po-3"):
            await gateway.api.submit(task_id)
        link = (await alice.page("/console/tasks?status=queued")).css_first("a[href^='/console/bulk?']")
        assert link is not None
        assert link.attributes["href"] == "/console/bulk?status=queued"
        page = await alice.page(QUEUED)
        gateway.time.advance(1)
        await gateway.api.lease()
        answer = await alice.client.post("/console/bulk", data=filled_in(page, "the fair is <b>off</b>"))
        assert answer.status_code == 200, answer.text
        assert "task po-1 has changed since it was shown" in text_of(LexborHTMLParser(answer.text), "table")
        assert [await gateway.api.status(each) for each in ("po-1", "po-2", "po-3")] == ["leased", "failed", "failed"]
        told = gateway.rows("SELECT actor, reason FROM events WHERE kind = 'cancel'")
        assert [(row["actor"], row["reason"]) for row in told] == [("alice", "the fair is <b>off</b>")] * 2


async def test_a_second_person_confirms_each(tmp_path: Path) -> None:
    async with console(tmp_path, operator_token=(OPERATOR, "bob=the-token-of-bobby"), second_person=True) as made:
        gateway, alice = made
        await stale_with_a_permit(gateway, alice)
        page = await alice.page(STALE)
        assert "until a second person confirms it" in text_of(page, "table")
        answer = await alice.client.post("/console/bulk", data=filled_in(page, "seen there"))
        assert answer.status_code == 200, answer.text
        assert await gateway.api.status("po-1") == "stale"
        async with visitor(gateway) as bob:
            await bob.sign_in("the-token-of-bobby")
            await bob.act("/console/tasks/po-1", "confirm_proposal", reason="so it is")
        assert await gateway.api.status("po-1") == "succeeded"


async def test_who_looks_only_and_a_forged_form_decide_nothing(tmp_path: Path) -> None:
    async with console(tmp_path, viewer_token=("eve=the-token-of-eve-who-looks",)) as (gateway, alice):
        await gateway.api.submit("po-1")
        fields = filled_in(await alice.page(QUEUED), "because")
        async with visitor(gateway) as eve:
            await eve.sign_in("the-token-of-eve-who-looks")
            assert (await eve.page("/console/tasks?status=queued")).css_first("a[href^='/console/bulk?']") is None
            assert (await eve.get(QUEUED)).text.count('method="post" action="/console/bulk"') == 0
            assert (
                await eve.client.post("/console/bulk", data=fields | {"csrf": [await eve.csrf()]})
            ).status_code == 403
        assert (await alice.client.post("/console/bulk", data=fields | {"csrf": ["x"]})).status_code == 403
        assert (await alice.client.post("/console/bulk", data=fields | {"reason": [""]})).status_code == 422
        assert (await alice.client.post("/console/bulk", data=fields | {"seen": ["po-1 soon"]})).status_code == 422
        assert (await alice.get("/console/bulk?status=queued&decision=approve")).status_code == 422
        assert await gateway.api.status("po-1") == "queued"
