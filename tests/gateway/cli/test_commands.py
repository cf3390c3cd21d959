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
from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.cli.command import Commands
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.process import gateway_process

WHY = ("--reason", "looked at the site")


async def stale(api: GrpcApi, commands: Commands, task_id: str = "po-1") -> None:
    await api.take(task_id, session_id=f"session-that-took-{task_id}")
    await commands.ok("expire", task_id, *WHY)


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


async def test_from_a_stale_task_to_its_end(api: GrpcApi, commands: Commands) -> None:
    await stale(api, commands)
    shown = (await commands.ok("decisions")).out
    assert "An order is impossible: no submit permit was ever granted" in shown
    assert "it can be reclaimed or requeued at once" in shown
    assert "order-gateway requeue po-1 --reason" in shown
    assert "order-worker reclaim po-1" in shown
    (decision,) = (await commands.ok("decisions", "--json")).json["decisions"]
    assert decision["allowed"] == ["reclaim", "requeue", "resolve"]
    assert (await commands.ok("requeue", "po-1", *WHY)).out == "task po-1 is now queued\n"
    assert (await commands.ok("withdraw", "po-1", *WHY)).out == "task po-1 is now stale\n"
    refused = await commands.run("cancel", "po-1", *WHY)
    assert (refused.code, refused.out) == (Exit.REFUSED, "")
    assert re.fullmatch(r"order-gateway: task po-1 is stale .*; what you can do: .*\n", refused.err)
    assert "possible now" not in refused.err, "the commands say it, and a report is none"
    assert "was leased 1 time: cancel" in refused.err
    assert (
        "what you can do: `order-worker reclaim po-1 --reason ...` or `order-gateway requeue po-1 --reason ...` or"
        in refused.err
    )
    again = await commands.run("expire", "po-1", *WHY)
    assert "expire is not possible" in again.err
    done = await commands.ok(
        "resolve", "po-1", "succeeded", *WHY, "--state", "paid", "--order-number", "250-1", "--json"
    )
    assert done.json["status"] == "TASK_STATUS_SUCCEEDED"
    assert done.json["reports"][0]["site_order_id"] == "250-1"
    assert (await commands.ok("decisions")).out == "nothing to decide\n"
    assert await api.status() is TaskStatus.SUCCEEDED


async def test_failed_too_early_says_when(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.permit(lease)
    await commands.ok("expire", "po-1", *WHY)
    shown = (await commands.ok("decisions")).out
    assert "to failed in 15 min: until then the site may show an order late" in shown
    assert "look at the site first; reclaim or requeue only lets a worker verify there" in shown
    assert "look at the site first" in (await commands.ok("alerts")).out
    refused = await commands.run("resolve", "po-1", "failed", *WHY)
    assert refused.code == Exit.REFUSED
    assert "it can be resolved to failed in 15 min, to succeeded now" in refused.err, "as `decisions` says it"
    assert (await commands.ok("resolve", "po-1", "succeeded", *WHY)).out == "task po-1 is now succeeded\n"


async def test_another_order_number_than_the_worker_s_is_refused(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.report(lease, OrderState.ORDERED, site_order_id="250-1")
    await commands.ok("expire", "po-1", *WHY)
    ran = await commands.run("resolve", "po-1", "succeeded", *WHY, "--order-number", "250-9")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "told of task po-1 (250-1); leave the order number away or give the known one" in ran.err
    assert "with the order number 250-1 at" in (await commands.ok("decisions")).out


async def test_what_is_offered_for_a_task_that_has_ended(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.permit(lease)
    await api.report(lease, OrderState.PAID, terminal=True, site_order_id="250-1")
    await api.report(lease, OrderState.CANCELLED, sequence=2)
    shown = (await commands.ok("decisions")).out
    assert "An order is certain" in shown
    assert "order-gateway alerts clear 1 --reason" in shown
    for never in ("to failed", "order-gateway resolve", "may show an order late"):
        assert never not in shown


async def test_a_failed_task_is_offered_what_it_can_become(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.report(lease, OrderState.CANCELLED, terminal=True)
    await api.report(lease, OrderState.PAID, sequence=2)
    shown = (await commands.ok("decisions")).out
    assert "order-gateway resolve po-1 succeeded|failed --reason" in shown
    assert "(to failed in 15 min)" in shown
    assert "--although-impossible" not in shown


async def test_a_refusal_names_options_and_no_fields_of_the_contract(api: GrpcApi, commands: Commands) -> None:
    await stale(api, commands)
    refused = await commands.run("resolve", "po-1", "succeeded", *WHY)
    assert refused.code == Exit.USAGE
    assert re.search(r"--order-number: is required: .*, or say --although-impossible where it has none", refused.err)


async def test_what_is_advised_fits_the_terminal_and_a_command_stays_whole(
    api: GrpcApi, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await api.take()
    await api.permit(lease)
    await commands.ok("expire", "po-1", *WHY)
    monkeypatch.setattr("gateway.cli.commands.decisions.width", lambda: 60)
    shown = (await commands.ok("decisions")).out.partition("what you can do\n")[2]
    assert [line for line in shown.splitlines() if len(line) > 60 and "order-" not in line] == []
    assert "  order-gateway resolve po-1 succeeded|failed --reason ...\n" in shown


async def test_a_certain_order_is_not_said_to_show_late(api: GrpcApi, commands: Commands) -> None:
    lease = await api.take()
    await api.permit(lease)
    await api.report(lease, OrderState.ORDERED)
    await commands.ok("expire", "po-1", *WHY)
    shown = (await commands.ok("decisions")).out
    assert "(to failed in 15 min)" in shown
    refused = await commands.run("resolve", "po-1", "failed", *WHY)
    assert "late" not in shown + refused.err


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


async def test_a_never_leased_task_is_cancelled(api: GrpcApi, commands: Commands) -> None:
    await api.submit()
    assert (await commands.ok("cancel", "po-1", *WHY)).out == "task po-1 is now failed\n"


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


async def test_a_token_opens_and_none_or_a_wrong_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = {"operator_token": "op-secret", "worker_token": "worker-secret"}
    async with running_gateway(tmp_path, token="op-secret", **tokens) as gateway:
        url = {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"}
        without = await Commands(url).run("decisions")
        assert without.code == Exit.DENIED
        assert "set RAKUTEN_OPERATOR_TOKEN" in without.err
        wrong = await Commands(url | {"RAKUTEN_API_TOKEN": "worker-secret"}).run("decisions")
        assert wrong.code == Exit.DENIED
        assert "needs a token of the role operator" in wrong.err
        assert "secret" not in without.err + wrong.err
        right = Commands(url | {"RAKUTEN_API_TOKEN": "x", "RAKUTEN_OPERATOR_TOKEN": "op-secret,next-one"})
        await right.ok("pause", *WHY)
        (event,) = (await right.ok("events", "--kind", "pause", "--json")).json["events"]
        assert event["actor"] == "operator"
        plain = await right.run("decisions", "--gateway", "grpc://gateway.example")
        assert plain.code == Exit.USAGE
        assert "plain text" in plain.err


async def test_the_former_name_of_the_address_still_works_and_warns(
    gateway: RunningGateway, commands: Commands
) -> None:
    former = {"RAKUTEN_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"}
    ran = await Commands(former).ok("decisions")
    assert "warning: RAKUTEN_GATEWAY_URL is the former name of RAKUTEN_ORDER_GATEWAY_URL: rename it" in ran.err
    both = await Commands(former | commands.environment | {"RAKUTEN_GATEWAY_URL": "grpc://127.0.0.1:1"}).ok("decisions")
    assert both.out == ran.out
    assert not (await commands.ok("decisions")).err


async def test_a_named_token_shows_in_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = "alice=s3cret-of-16-chars"
    async with running_gateway(tmp_path, operator_token=named) as gateway:
        alice = Commands(
            {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}", "RAKUTEN_OPERATOR_TOKEN": named}
        )
        await alice.ok("pause", *WHY)
        (event,) = (await alice.ok("events", "--kind", "pause", "--json")).json["events"]
        assert event["actor"] == "alice"


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


async def test_config_shows_where_each_value_comes_from_and_no_secret(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "shell" / ".env").write_text("RAKUTEN_SITES=rakuten,sandbox\nRAKUTEN_LOG_LEVEL=DEBUG\n")
    here = Commands(
        {
            **commands.environment,
            "RAKUTEN_API_TOKEN": "one-secret,two-secret",
            "RAKUTEN_LOG_LEVEL": "ERROR",
            "RAKUTEN_ALERT_WEBHOOK_URL": "https://hooks.example/secret",
        }
    )
    told = (await here.ok("config", "--json")).json
    assert told["RAKUTEN_SITES"] == {"value": "rakuten,sandbox", "from": ".env"}
    assert told["RAKUTEN_LOG_LEVEL"] == {"value": "ERROR", "from": "environment"}
    assert told["RAKUTEN_LEASE_TTL_SECONDS"] == {"value": "300", "from": "default"}
    assert told["RAKUTEN_API_TOKEN"] == {"value": "(2 set)", "from": "environment"}
    shown = (await here.ok("config")).out
    assert "secret" not in shown + json.dumps(told)
    broken = await Commands({**commands.environment, "RAKUTEN_LEASE_TTL_SECONDS": "soon"}).run("config")
    assert broken.code == Exit.USAGE
    assert "RAKUTEN_LEASE_TTL_SECONDS" in broken.err


async def test_config_takes_an_empty_value_as_none_and_tells_of_misspelt_names(
    commands: Commands, tmp_path: Path
) -> None:
    (tmp_path / "shell" / ".env").write_text("RAKUTEN_SITES=sandbox\nRAKUTEN_LEASE_TTL_SECOND=9\nRAKUTEN_WORKER_ID=w\n")
    here = Commands({**commands.environment, "RAKUTEN_SITES": "", "RAKUTEN_OPERATOR_TOKN": "s", "RAKUTEN_QQQQ": "1"})
    ran = await here.ok("config", "--json")
    assert ran.json["RAKUTEN_SITES"] == {"value": "sandbox", "from": ".env"}
    assert ran.err.count("is no setting") == 3
    assert (
        "RAKUTEN_LEASE_TTL_SECOND in .env is no setting and is ignored; is RAKUTEN_LEASE_TTL_SECONDS meant" in ran.err
    )
    assert "RAKUTEN_OPERATOR_TOKN in the environment" in ran.err
    assert "is RAKUTEN_OPERATOR_TOKEN meant?" in ran.err
    assert "RAKUTEN_QQQQ in the environment is no setting and is ignored\n" in ran.err
    assert "callbacks are not signed" in ran.err


async def test_config_refuses_what_serve_refuses(commands: Commands) -> None:
    tls = {"RAKUTEN_GATEWAY_TLS_CERT": "none.pem", "RAKUTEN_GATEWAY_TLS_KEY": "none.key"}
    ran = await Commands({**commands.environment, **tls}).run("config")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "RAKUTEN_GATEWAY_TLS_CERT" in ran.err


async def test_a_misspelt_setting_is_told_at_start(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, lease_ttl_second="9") as running:
        assert "is RAKUTEN_LEASE_TTL_SECONDS meant?" in running.log


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
