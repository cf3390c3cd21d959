"""Each page with everything on it that there can be, whatever it says, for those who act and for those who look."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.console.app import PAGES
from gateway.console.messages import LANGUAGES
from tests.gateway.console.browser import OPERATOR, Visitor, console, offered, text_of, visitor
from tests.gateway.operations.receiver import receiving
from tests.gateway.support import dump
from tests.gateway.support.in_process import RunningGateway

VIEWER = "eve=the-token-of-eve-who-looks"
HOSTILE = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)> \x1b[31mred\u202egnp.exe {{7*7}} {name} "
SHOWN = "<script>document.title='x'</script>\"'><img src=x onerror=alert(1)> U+001B[31mredU+202Egnp.exe {{7*7}} {name}"


@asynccontextmanager
async def full_console(folder: Path, **settings: Any) -> AsyncIterator[tuple[RunningGateway, Visitor]]:
    """A gateway with a task in each place, and texts that mean no good wherever a text can come from outside."""
    wanted = {"viewer_token": (VIEWER,), "catalog_interval_seconds": 3600, "sites": ("rakuten", "sandbox")} | settings
    async with console(folder, **wanted) as (gateway, alice):
        api = gateway.api
        await api.submit("po-1", intent_json='{"note":"<b>bold</b>\\u202e"}', callback_url="http://127.0.0.1:9/x")
        lease = await api.take("po-1")
        await api.report(lease, detail=HOSTILE)
        await api.permit(lease)
        await alice.act("/console/tasks/po-1", "expire", reason=HOSTILE)
        lease = await api.take("po-2")
        await api.report(lease, terminal=True, detail="x" * 4_000)
        await api.submit("po-3", requires_approval=True, max_total_yen=12_345, labels={"team": HOSTILE[:200]})
        await alice.act("/console/queue", "pause", reason=HOSTILE)
        await alice.act(
            "/console/money", "set_budget", budget_id="daily", period="day", limit_yen="50,000", reason="enough"
        )
        await alice.act("/console/callbacks", "send_test_callback", url="http://127.0.0.1:9/hook")
        yield gateway, alice


def addresses() -> list[str]:
    """The address of each page."""
    known = {"task_id": "po-1", "budget_id": "daily", "query_id": "none"}
    filled = (re.sub(r"\{(\w+)\}", lambda name: known[name[1]], path) for path in PAGES)
    bulk = "/console/bulk?status=stale&status=needs_human&status=queued&decision=resolve_failed"
    return [*(path for path in filled if not path.endswith("/none")), bulk]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_page_is_there_and_takes_texts_as_texts(tmp_path: Path, language: str) -> None:
    async with full_console(tmp_path) as (_, alice):
        for path in addresses():
            answer = await alice.get(path, **{"accept-language": language})
            assert answer.status_code == 200, (path, answer.text)
            assert f'<html lang="{language}">' in answer.text
            assert "<img" not in answer.text, path
            assert answer.text.count("<script") == 1, path
            assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", answer.text), path
            assert re.search(r"\sstyle=|\son[a-z]+=", re.sub(r"&lt;.*?&gt;", "", answer.text)) is None, path
        shown = text_of(await alice.page("/console/tasks/po-1"))
        assert shown.count(SHOWN) >= 3, "detail, reason, and the detail in the decision"


async def test_a_viewer_sees_it_all_and_can_do_nothing(tmp_path: Path) -> None:
    async with full_console(tmp_path) as (gateway, alice), visitor(gateway) as eve:
        assert (await eve.sign_in("the-token-of-eve-who-looks")).url.path == "/console"
        for path in addresses():
            page = await eve.page(path)
            assert offered(page) == [], path
            assert "looks only" in text_of(page, ".who")
        page = await alice.page("/console/tasks/po-1")
        for action in offered(page):
            answer = await eve.client.post(
                f"/console/do/{action}", data={"task_id": "po-1", "reason": "r", "csrf": await eve.csrf()}
            )
            assert answer.status_code == 403, action


async def test_channels_are_tried_and_shown(tmp_path: Path) -> None:
    with receiving() as takes, receiving() as refuses:
        refuses.answer = 503
        urls = [each.url.replace("http://", "json://").replace("alerts?key=secret", "x") for each in (takes, refuses)]
        async with console(tmp_path, notify_urls=" ".join(urls)) as (_, alice):
            assert "No channel has been tried yet." in text_of(await alice.page("/console/queue"))
            await alice.act("/console/queue", "send_test_notification")
            told = text_of(await alice.page("/console/queue"))
    assert told.count("takes messages") == 1
    assert "json-2not taken: 1" in told
    assert "the service answered 503" in told
    assert len(takes.bodies) == 1


async def test_what_one_proposes_about_dispatch_another_confirms(tmp_path: Path) -> None:
    tokens = (OPERATOR, "bob=the-token-of-bobby")
    async with console(tmp_path, operator_token=tokens, second_person=True) as (gateway, alice):
        await alice.act("/console/queue", "pause", reason="a restore")
        dump.execute(gateway.path, "INSERT INTO restores (restored_at, reason) VALUES ('9999', 'as a restore does')")
        await alice.act("/console/queue", "resume", reason="all is seen to")
        page = await alice.page("/console/queue")
        assert "Waits for a second person. alice: Resume" in text_of(page, "#proposal-1")
        assert "confirm_proposal" not in offered(page)
        async with visitor(gateway) as bob:
            await bob.sign_in("the-token-of-bobby")
            await bob.act("/console/queue", "confirm_proposal", reason="so it is")
            assert "Nothing is paused" in text_of(await bob.page("/console/queue"))


async def test_what_the_pages_say(tmp_path: Path) -> None:
    async with full_console(tmp_path, api_token=("the-token", "b" * 40)) as (_, alice):
        money = text_of(await alice.page("/console/money"))
        assert re.search("daily ?all orders ?a day", money)
        assert "¥50,000" in money
        assert "po-3" in money
        settings = text_of(await alice.page("/console/settings"))
        assert "the-token" not in settings
        assert re.search(r"RAKUTEN_API_TOKEN ?\(2 set\)", settings)
        assert "all sites" in text_of(await alice.page("/console/queue"))
        listed = text_of(await alice.page("/console/tasks?status=stale&status=needs_human&oldest_first=1"), "table")
        assert re.findall(r"po-\d", listed) == ["po-1", "po-2"]
        assert "po-3" in text_of(await alice.page("/console/statement"), "table")
        assert "test_callback" in text_of(await alice.page("/console/history"), "table")


@pytest.mark.parametrize(
    ("query", "field"),
    [("created_from=yesterday", "created_from"), ("status=lost", "status"), ("site=nowhere", "site"),
     ("label=x", "label"), ("task_id_prefix=%20%2F", "task_id_prefix"), ("page=nonsense", "page_token"),
     ("updated_to=0001-01-01T00:00%2B09:00", "updated_to")],
)  # fmt: skip
async def test_a_filter_that_makes_no_sense_is_told_with_its_field(tmp_path: Path, query: str, field: str) -> None:
    async with console(tmp_path) as (_, alice):
        answer = await alice.get(f"/console/tasks?{query}")
        assert answer.status_code == 422
        assert field in answer.text


async def test_lists_go_on_page_by_page(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        for number in range(120):
            await gateway.api.submit(f"po-{number:03d}")
        seen: list[str] = []
        address = "/console/tasks?oldest_first=1"
        while address:
            page = await alice.page(address)
            seen += [link.text() for link in page.css("td a.id")]
            following = page.css_first("a[rel=next]")
            address = "" if following is None else str(following.attributes["href"])
        assert seen == [f"po-{number:03d}" for number in range(120)]


async def test_a_large_intent_is_shown_whole(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        await gateway.api.submit("po-1", intent_json=f'{{"n":12345678901234567890,"text":"{"日" * 80_000}"}}')
        page = await alice.page("/console/tasks/po-1")
        shown = page.css_first("pre.json")
        assert shown is not None
        assert '"n": 12345678901234567890' in shown.text()
        assert shown.text().count("日") == 80_000
