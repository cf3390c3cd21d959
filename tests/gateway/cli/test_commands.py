"""What each command does, says and ends with, against a running gateway."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from ordergateway.v1 import operations_pb2

from common.exit_codes import Exit
from gateway.cli.commands.health import _gateway
from gateway.cli.exit_codes import CODES
from gateway.domain.states import OrderState
from tests.gateway.cli.command import WHY, Commands, stale
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.in_process import RunningGateway


async def test_tasks_are_listed_for_people_and_for_scripts(api: GrpcApi, commands: Commands) -> None:
    assert (await commands.ok("tasks", "list")).out == "no tasks\n"
    for number in range(3):
        await api.submit(f"po-{number}", site="sandbox" if number == 2 else "rakuten")
    shown = (await commands.ok("tasks", "list")).out
    assert re.findall(r"^ *(po-\d)", shown, re.MULTILINE) == ["po-2", "po-1", "po-0"]
    found = (await commands.ok("tasks", "list", "--json", "--site", "rakuten", "--limit", "1")).json["tasks"]
    assert [(task["task_id"], task["status"]) for task in found] == [("po-1", "TASK_STATUS_QUEUED")]
    assert (await commands.ok("tasks", "list", "--status", "stale")).out == "no tasks\n"


async def test_a_task_is_shown_with_its_reports_and_its_history(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.report(lease, OrderState.IN_CART, payable_yen=980, evidence_ref="po-1/02-cart-check")
    shown = (await commands.ok("tasks", "show", "po-1")).out
    for part in ("running", "in_cart", "980", "po-1/02-cart-check", "impossible", "acknowledge", "never"):
        assert part in shown
    told = (await commands.ok("tasks", "show", "po-1", "--json")).json
    assert told["task"]["reports"][0]["payable_yen"] == "980"
    assert [event["kind"] for event in told["events"]] == ["submit", "lease", "acknowledge", "report"]
    assert lease.lease_token not in shown + json.dumps(told)


async def test_a_task_is_watched_to_its_end(api: GrpcApi, commands: Commands) -> None:
    await api.submit()
    await api.cancel()
    (line,) = (await commands.ok("tasks", "watch", "po-1")).out.splitlines()
    assert "po-1  failed" in line
    (told,) = (await commands.ok("tasks", "watch", "po-1", "--json")).out.splitlines()
    assert json.loads(told)["status"] == "TASK_STATUS_FAILED"


async def test_health_counts_what_waits_for_a_person(api: GrpcApi, commands: Commands) -> None:
    quiet = (await commands.ok("health")).out
    line = r"^serves +\S+-0 \d+\.\d+\.\d+, since .*, 0 waiting, leads, answers$"
    assert re.search(line, quiet, re.MULTILINE), quiet
    assert "to decide" not in quiet
    assert "alerts" not in quiet
    lease = await api.take("po-1", session_id="session-that-took-po-1")
    await api.report(lease, OrderState.ORDERED, terminal=True)
    for name in ("po-2", "po-3"):
        await stale(api, commands, name)
    shown = (await commands.ok("health")).out
    assert re.search("^to decide +2 stale, 1 needs_human; see `order-gateway decisions`", shown, re.MULTILINE)
    assert re.search("^alerts +3 standing; see `order-gateway alerts`", shown, re.MULTILINE)
    assert "paused_at" not in (await commands.ok("health", "--json")).out


def test_a_gateway_is_told_in_a_line() -> None:
    lives = operations_pb2.Gateway(gateway_id="1", name="b", version="1.2.3", waiting_count=4, leads=True, answers=True)
    lives.started_at.FromJsonString("2026-11-30T08:00:00Z")
    assert re.fullmatch("b 1.2.3, since .*, 4 waiting, leads, answers", _gateway(lives))
    dead = operations_pb2.Gateway(gateway_id="1", name="b", version="1.2.3", gone=True)
    dead.last_seen_ago.FromTimedelta(timedelta(seconds=95))
    assert _gateway(dead) == "b 1.2.3, gone: not heard of for 95 s"
    assert _gateway(operations_pb2.Gateway(gateway_id="17", started_at=lives.started_at)).startswith("17, since")


async def test_pause_and_resume(api: GrpcApi, commands: Commands) -> None:
    await api.submit()
    assert "all sites" in (await commands.ok("pause", *WHY)).out
    told = (await commands.ok("pause", "rakuten", *WHY, "--json")).json
    assert [pause["site"] for pause in told["pauses"]] == ["", "rakuten"]
    assert await api.lease() is None
    assert "paused" in (await commands.ok("health")).out
    again = await commands.ok("pause", "--reason", "upgrade")
    assert re.fullmatch(
        r"order-gateway: warning: anonymous paused all sites at .* \(looked at the site\), and stays as it was: ask "
        r"anonymous before you resume\n",
        again.err,
    ), "resuming would lift somebody else's pause"
    assert "upgrade" not in again.out
    assert "resumed: anonymous paused all sites at" in (await commands.ok("resume", *WHY)).out
    unknown = await commands.run("resume", "rakutne", *WHY)
    assert (unknown.code, "must be one of the configured sites rakuten" in unknown.err) == (Exit.USAGE, True)
    assert (await commands.ok("resume", "rakuten", *WHY)).out.endswith("dispatch is not paused\n")
    assert await api.lease() is not None


async def test_workers(api: GrpcApi, commands: Commands, gateway: RunningGateway) -> None:
    assert (await commands.ok("workers", "list")).out == "no worker has called yet\n"
    await api.lease("w1")
    gateway.time.advance(4_000)
    shown = (await commands.ok("workers", "list")).out
    assert re.search(r"w1 +2026-11-29 15:58:22Z +66 min +offline", shown)
    assert (await commands.ok("workers", "list", "--json")).json["workers"][0]["offline"] is True
    assert (await commands.run("workers", "forget", "w9", *WHY)).code == Exit.NOT_FOUND
    assert (await commands.ok("workers", "forget", "w1", *WHY)).out == "worker w1 is forgotten\n"


async def test_alerts_and_their_clearing(api: GrpcApi, commands: Commands) -> None:
    assert (await commands.ok("alerts")).out == "no alert stands\n"
    lease = await api.take()
    await api.report(lease, OrderState.PAID, terminal=True)
    await api.report(lease, OrderState.CANCELLED, sequence=2)
    (alert,) = (await commands.ok("alerts", "--json")).json["alerts"]
    assert alert["kind"] == "ALERT_KIND_CONTRADICTING_REPORT"
    assert "contradicting_report" in (await commands.ok("alerts")).out
    assert (await commands.ok("alerts", "--kind", "task_stale")).out == "no alert stands\n"
    assert (await commands.run("alerts", "clear", "99", *WHY)).code == Exit.NOT_FOUND
    assert (await commands.ok("alerts", "clear", alert["alert_id"], *WHY)).out == "alert 1 is cleared\n"
    assert (await commands.ok("alerts")).out == "no alert stands\n"
    assert "contradicting_report" in (await commands.ok("alerts", "--all")).out
    await stale(api, commands, "po-2")
    refused = await commands.run("alerts", "clear", "2", *WHY)
    assert refused.code == Exit.REFUSED
    assert "clears itself when the task is reclaimed, requeued or resolved" in refused.err


def unwrapped(box: str) -> str:
    """What stands in the frame that an error of usage is shown in."""
    return " ".join(box.replace("│", " ").split())


async def test_events_with_filters(api: GrpcApi, commands: Commands) -> None:
    await stale(api, commands)
    await api.submit("po-2")
    shown = (await commands.ok("events")).out
    assert re.search(r"expire_now +anonymous +w1 +leased +stale +looked at the site", shown)
    found = (await commands.ok("events", "--task", "po-1", "--kind", "submit", "--kind", "lease", "--json")).json
    assert [event["kind"] for event in found["events"]] == ["lease", "submit"]
    assert (await commands.ok("events", "--until", "2026-11-29")).out == "no events\n"
    assert len((await commands.ok("events", "--since", "2026-11-29T15:58:22Z", "--json")).json["events"]) == 5
    yesterday = await commands.run("events", "--since", "yesterday")
    assert (yesterday.code, "write a time like 2026-11-29T15:58:22Z" in unwrapped(yesterday.err)) == (Exit.USAGE, True)
    assert "no event of the kind bogus; is it spelt so?" in (await commands.ok("events", "--kind", "bogus")).out
    wrong = await commands.run("resolve", "po-1", "paid", *WHY)
    assert "OUTCOME': 'paid' is not one of 'succeeded', 'failed'" in unwrapped(wrong.err)


async def test_more_than_one_page_is_fetched(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    for sequence in range(1, 251):
        await api.report(lease, sequence=sequence)
    found = (await commands.ok("events", "--limit", "1000", "--json")).json["events"]
    assert [int(event["sequence"]) for event in found] == list(range(253, 0, -1))


async def test_what_comes_from_outside_cannot_steer_the_terminal(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.report(lease, detail="\x1b]0;owned\x07\x1b[31mred[/bold][link=x]")
    shown = (await commands.ok("tasks", "show", "po-1")).out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "red[/bold][link=x]" in shown, "markup is shown as it is"


async def test_every_kind_of_failure_has_its_code_and_one_line(commands: Commands, tmp_path: Path) -> None:
    cases = {
        ("tasks", "show", "po-9"): (Exit.NOT_FOUND, "there is no task po-9"),
        ("requeue", "po-1", "--reason", " "): (Exit.USAGE, "reason: is required"),
        ("tasks", "show", "lease/../x"): (Exit.USAGE, "task_id: must be"),
        ("tasks", "list", "--gateway", "ftp://x"): (Exit.USAGE, "grpc://host:port"),
        ("tasks", "list", "--gateway", "grpc://127.0.0.1:9"): (Exit.UNREACHABLE, "nothing listens at 127.0.0.1:9"),
        ("restore", "--check", str(tmp_path / "none.db")): (Exit.DATABASE, "No such file"),
        ("restore", "--check", __file__): (Exit.DATABASE, "no database"),
    }
    for words, (code, line) in cases.items():
        ran = await commands.run(*words)
        assert (ran.code, ran.out) == (code, ""), (words, ran)
        assert ran.err.count("\n") == 1, ran.err
        assert ran.err.startswith("order-gateway: ")
        assert line in ran.err
    assert (await commands.run("requeue", "po-1")).code == Exit.USAGE


@pytest.mark.sqlite
async def test_backup_and_restore(api: GrpcApi, commands: Commands, gateway: RunningGateway, tmp_path: Path) -> None:
    await api.submit("po-1")
    made = (await commands.ok("backup", "--json")).json
    assert made["task_count"] == "1"
    await api.submit("po-2")
    assert "sha256" in (await commands.ok("backup")).out

    folder = tmp_path / "backups"
    checked = (await commands.ok("restore", "--check", str(folder / made["file_name"]), "--json")).json
    assert checked["sha256"] == made["sha256"]
    here = Commands({**commands.environment, "RAKUTEN_BACKUP_DIR": str(folder)})
    assert "the backup is whole" in (await here.ok("restore", "--check", made["file_name"])).out

    running = Commands({**here.environment, "RAKUTEN_GATEWAY_DB_PATH": str(gateway.path)})
    refused = await running.run("restore", made["file_name"], "--yes")
    assert refused.code == Exit.DATABASE
    assert f"{gateway.path}: another gateway process has it open" in refused.err

    target = Path(here.environment["RAKUTEN_GATEWAY_DB_PATH"])
    missing = await here.run("restore", made["file_name"])
    assert missing.code == Exit.USAGE
    assert f"There is no database at {target} (RAKUTEN_GATEWAY_DB_PATH)." in missing.err
    assert "nobody answered, and nothing was changed; --yes says beforehand" in missing.err
    mistyped = await here.run("restore", "typo.db")
    assert (mistyped.code, mistyped.err.count("\n")) == (Exit.DATABASE, 1), "told before anything is asked"
    assert f"there is no backup typo.db, neither here nor in {folder}" in mistyped.err
    nobody_said_so = await here.run("restore", "--check", str(target))
    assert "No such file" in nobody_said_so.err
    done = await here.ok("restore", made["file_name"], given="y\n")
    assert f"{target} is restored" in done.out
    assert "1 tasks, 1 of them open" in done.out
    assert "order-gateway resume" in done.out
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT task_id, status FROM tasks").fetchall() == [("po-1", "stale")]
        assert connection.execute("SELECT site FROM pauses").fetchall() == [("",)]
    asked = await here.run("restore", made["file_name"], given="n\n")
    assert (asked.code, asked.err.endswith("order-gateway: nothing was changed\n")) == (1, True)
    again = (await here.ok("restore", made["file_name"], "--yes", "--json")).json
    assert again["set_aside"] in {str(path) for path in target.parent.iterdir()}


async def test_queries_catalogue_and_callbacks_answer(commands: Commands) -> None:
    assert (await commands.ok("queries", "list")).out == "no queries\n"
    assert (await commands.run("queries", "show", "q-1")).code == Exit.NOT_FOUND
    off = await commands.run("catalog", "list")
    assert off.code == Exit.REFUSED
    assert "RAKUTEN_CATALOG_INTERVAL_SECONDS" in off.err


async def test_completion_and_help(commands: Commands) -> None:
    for words in ((), ("tasks",), ("alerts",)):
        shown = " ".join((await commands.ok(*words, "--help")).out.split())
        for code in CODES:
            assert f"{code.value} " in shown
