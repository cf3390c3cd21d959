"""Signing in and out, and what nobody gets past."""

import asyncio
import re
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.console.app import PAGES
from gateway.console.live import MAX_PAGES_OF_ONE, Changes
from gateway.dispatch.notifier import Notifier
from gateway.domain.refusals import RefusedError
from tests.gateway.console.browser import OPERATOR, SECRET, console, text_of, visitor
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime

COOKIE = "order_gateway_session"


async def test_whoever_is_not_signed_in_is_asked_to_be_on_every_page(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), visitor(gateway) as stranger:
        for path in PAGES:
            answer = await stranger.get(re.sub("{.*}", "x-1", path))
            assert answer.url.path == "/console/sign-in", path
        answer = await stranger.client.post("/console/do/requeue", data={"task_id": "po-1", "reason": "r"})
        assert answer.status_code == 401


async def test_the_cookie_is_for_this_site_and_no_script(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), visitor(gateway) as bob:
        answer = await bob.client.post(
            "/console/sign-in", data={"token": SECRET, "back": "/console/tasks/po-1"}, follow_redirects=False
        )
        assert answer.headers["location"] == "/console/tasks/po-1"
        [cookie] = answer.headers.get_list("set-cookie")
        assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert SECRET not in cookie
        tls = await bob.client.post(
            "/console/sign-in",
            data={"token": SECRET},
            headers={"x-forwarded-proto": "https"},
            follow_redirects=False,
        )
        assert "; Secure" in tls.headers["set-cookie"]


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/console@evil.example", "/consoles", "/console/\\x"]
)
async def test_signing_in_leads_nowhere_else(tmp_path: Path, back: str) -> None:
    async with console(tmp_path) as (gateway, _), visitor(gateway) as bob:
        answer = await bob.client.post("/console/sign-in", data={"token": SECRET, "back": back}, follow_redirects=False)
        assert answer.headers["location"] == "/console"


async def test_a_session_ends_with_sign_out_also_for_a_copy_of_its_cookie(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice), visitor(gateway) as thief:
        thief.client.cookies.set(COOKIE, alice.client.cookies[COOKIE])
        assert (await thief.get()).url.path == "/console"
        page = await alice.page()
        [csrf] = {str(each.attributes["value"]) for each in page.css("input[name=csrf]")}
        answer = await alice.client.post("/console/sign-out", data={"csrf": csrf})
        assert answer.url.path == "/console/sign-in"
        assert COOKIE not in alice.client.cookies
        assert (await thief.get()).url.path == "/console/sign-in"


async def test_a_session_ends_by_time_and_not_a_second_before(tmp_path: Path) -> None:
    time = ManualTime()
    async with console(tmp_path, time=time, console_session_seconds=600) as (_, alice):
        time.advance(timedelta(seconds=599))
        assert (await alice.get()).url.path == "/console"
        time.advance(timedelta(seconds=1))
        assert (await alice.get()).url.path == "/console/sign-in"


async def test_a_session_ends_with_its_token_and_outlives_a_restart(tmp_path: Path) -> None:
    async with console(tmp_path) as (_, alice):
        cookie = alice.client.cookies[COOKIE]
    for tokens, where in (
        ((OPERATOR, "bob=another-token-here"), "/console"),
        (("bob=another-token-here",), "/console/sign-in"),
    ):
        async with running_gateway(tmp_path, operator_token=tokens) as gateway, visitor(gateway) as alice:
            alice.client.cookies.set(COOKIE, cookie)
            assert (await alice.get()).url.path == where


async def test_no_part_of_a_cookie_can_be_changed(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice), visitor(gateway) as thief:
        ends, name, mark = alice.client.cookies[COOKIE].split(".")
        for changed in (
            f"{int(ends) + 1}.{name}.{mark}",
            f"{ends}.{name}x.{mark}",
            f"{ends}.{name}.{'0' * 64}",
            "x" * 9000,
            "é",
        ):
            answer = await thief.client.get("/console", headers={"cookie": f"{COOKIE}={changed}".encode()})
            assert answer.status_code == 400 or answer.url.path == "/console/sign-in", changed


async def test_wrong_tokens_are_slow_and_right_ones_are_not(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), visitor(gateway) as guesser:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        answers = await asyncio.gather(*(guesser.sign_in(f"guess-{number}") for number in range(8)))
        assert {answer.status_code for answer in answers} == {401}
        assert loop.time() - begun >= 2, "four at a time, a second each"
        assert "This token is not valid" in answers[0].text
        begun = loop.time()
        assert (await guesser.sign_in()).status_code == 200
        assert loop.time() - begun < 1


async def test_guessing_keeps_nobody_out_who_has_a_token(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice), visitor(gateway) as guesser:
        guesses = [asyncio.ensure_future(guesser.sign_in(f"guess-{number}")) for number in range(80)]
        await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)  # one is told that too many wait
        loop = asyncio.get_running_loop()
        begun = loop.time()
        assert (await alice.sign_in()).status_code == 200
        assert loop.time() - begun < 5, "and it does not wait for those, who take 16 s"
        for guess in guesses:
            guess.cancel()
        await asyncio.wait(guesses)


async def test_signing_in_counts_as_one_request(tmp_path: Path) -> None:
    settings = {"operator_token": (OPERATOR,), "api_token": ("the-token",), "rate_limit_per_second": 1}
    async with running_gateway(tmp_path, token="the-token", **settings) as gateway, visitor(gateway) as other:
        signed_in = {"token": SECRET, "back": ""}
        answer = await other.client.post("/console/sign-in", data=signed_in, follow_redirects=False)
        assert answer.status_code == 303


def test_nobody_takes_all_places_of_open_pages() -> None:
    async def fill() -> None:
        changes = Changes(NoStore(), Notifier())  # type: ignore[arg-type]
        with ExitStack() as places:
            for _ in range(MAX_PAGES_OF_ONE):
                places.enter_context(changes.place("vic"))
            with pytest.raises(RefusedError, match="100 pages of vic are open"):
                places.enter_context(changes.place("vic"))
            places.enter_context(changes.place("bob"))
        assert not changes._open

    asyncio.run(fill())


class NoStore:
    async def read(self, *_: object) -> None:
        await asyncio.Event().wait()


async def test_without_tokens_a_link_in_an_alert_leads_to_the_page(tmp_path: Path) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    async with running_gateway(tmp_path, token="") as gateway, visitor(gateway) as anybody:
        assert (await anybody.get("/console", **followed)).status_code == 200
        assert (await anybody.get("/api/orders", **followed)).status_code == 403
        assert (await anybody.get("/console", **followed | {"Sec-Fetch-Dest": "iframe"})).status_code == 403
        assert (await anybody.get("/console", **followed | {"Host": "evil.example"})).status_code == 403


@pytest.mark.parametrize("role", ["upstream", "worker"])
async def test_other_roles_do_not_get_in(tmp_path: Path, role: str) -> None:
    token = f"{role}-secret-0123456789"
    async with console(tmp_path, **{f"{role}_token": (token,)}) as (gateway, _), visitor(gateway) as other:
        answer = await other.sign_in(token)
        assert answer.status_code == 403
        assert COOKIE not in other.client.cookies
        assert "needs the role operator" in answer.text


async def test_a_form_of_another_page_or_site_does_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        await gateway.api.submit("po-1")
        wanted = {"task_id": "po-1", "reason": "not wanted"}
        page = await alice.page("/console/tasks/po-1")
        [csrf] = {str(each.attributes["value"]) for each in page.css("input[name=csrf]")}
        for fields, headers in (
            (wanted, {}),
            (wanted | {"csrf": "0" * 64}, {}),
            (wanted | {"csrf": csrf}, {"origin": "https://evil.example"}),
            (wanted | {"csrf": csrf}, {"sec-fetch-site": "cross-site"}),
            (wanted | {"csrf": csrf}, {"sec-fetch-site": "same-site"}),
        ):
            answer = await alice.client.post("/console/do/cancel", data=fields, headers=headers)
            assert answer.status_code == 403, (fields, headers)
        assert await gateway.api.status("po-1") == "queued"
        assert (await alice.client.get("/console/do/cancel")).status_code == 405
        answer = await alice.client.post("/console/do/cancel", data=wanted | {"csrf": csrf})
        assert answer.status_code == 200
        assert await gateway.api.status("po-1") == "failed"


async def test_a_link_from_elsewhere_keeps_the_session(tmp_path: Path) -> None:
    """A browser sends no SameSite=Strict cookie with a click on another site; a page of ours asks once more."""
    async with console(tmp_path) as (gateway, _), visitor(gateway) as alice:
        answer = await alice.get("/console/tasks/po-1", **{"sec-fetch-site": "cross-site"})
        assert answer.url.path == "/console/tasks/po-1"
        assert '<meta http-equiv="refresh" content="0">' in answer.text


async def test_without_tokens_it_is_open_and_says_so(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway, visitor(gateway) as anybody:
        await gateway.api.submit("po-1")
        page = await anybody.page("/console/tasks/po-1")
        assert "no token is set" in text_of(page, ".who")
        assert (await anybody.send(page, "cancel", reason="not wanted")).status_code == 200
        assert await gateway.api.status("po-1") == "failed"
        answer = await anybody.client.post("/console/do/cancel", data={"task_id": "po-1", "reason": "r", "csrf": "x"})
        assert answer.status_code == 403


async def test_every_answer_forbids_what_is_not_ours(tmp_path: Path) -> None:
    async with console(tmp_path) as (_, alice):
        for path in ("/console", "/console/nothing", "/console/sign-in", "/console/tasks/po-1"):
            policy = (await alice.get(path)).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy


async def test_a_form_is_bounded(tmp_path: Path) -> None:
    async with console(tmp_path) as (_, alice):
        answer = await alice.client.post("/console/do/cancel", data={"reason": "x" * 70_000})
        assert answer.status_code == 413
        answer = await alice.client.post("/console/do/cancel", content="&".join(f"a{n}=1" for n in range(400)))
        assert answer.status_code == 422
