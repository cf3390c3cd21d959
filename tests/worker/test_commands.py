"""`order-worker` as a user meets it: a process of its own, its commands, its exit codes."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import grpc
import httpx
import psutil
import pytest
import typer.main
from ordergateway.v1 import errors_pb2
from typer.core import TyperGroup
from typer.testing import CliRunner

from common.exit_codes import Exit, epilog
from tests.worker.conftest import Bench
from tests.worker.scripted_gateway import Refusal
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.cli.app import app
from worker.journal.journal import Journal

WHY = ("--reason", "its worker died")
WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""What starts a program for which the modes of files count, also where root runs the tests."""
COMMAND = str(Path(sys.executable).with_name("order-worker"))


def environment(settings: dict[str, str]) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.upper().startswith("RAKUTEN_")}
    return inherited | {"COLUMNS": "200", "NO_COLOR": "1"} | settings


def settings_of(bench: Bench) -> dict[str, str]:
    return {
        "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://{bench.target}",
        "RAKUTEN_WORKER_TOKEN": "secret-token-of-the-worker",
        "RAKUTEN_SANDBOX_URL": bench.shop.url,
        "RAKUTEN_TRADING_DB_PATH": "trading.db",
        "RAKUTEN_EVIDENCE_DIR": "evidence",
        "RAKUTEN_ORDER_MAX_TOTAL_YEN": "100000",
        "RAKUTEN_SCREENSHOTS": "no",
    }


async def call(bench: Bench, *arguments: str, **settings: str) -> tuple[int | None, str, str]:
    """Runs a command to its end, in a thread: exit code, output, errors. The bench goes on meanwhile."""
    with contextlib.chdir(bench.folder):
        done = await asyncio.to_thread(
            CliRunner().invoke, app, list(arguments), env=environment(settings_of(bench) | settings)
        )
    return done.exit_code, done.stdout, done.stderr


async def call_program(
    bench: Bench, *arguments: str, prefix: tuple[str, ...] = (), **settings: str
) -> tuple[int | None, str, str]:
    """As `call`, in a process of its own, which `prefix` starts."""
    process = await asyncio.create_subprocess_exec(
        *prefix,
        COMMAND,
        *arguments,
        cwd=bench.folder,
        env=environment(settings_of(bench) | settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 40)
    return process.returncode, output.decode(), errors.decode()


@asynccontextmanager
async def running(bench: Bench, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`order-worker run`; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        "run",
        cwd=bench.folder,
        env=environment(settings_of(bench) | settings),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_worker_process_listens_nowhere_and_ends_at_sigterm(bench: Bench) -> None:
    async with running(bench) as worker:
        bench.gateway.offer("po-1", bench.intent())
        await bench.gateway.end_of("po-1")
        await bench.gateway.called("LeaseOrders", times=2)
        sockets = psutil.Process(worker.pid).net_connections(kind="inet")
        assert [socket for socket in sockets if socket.status == psutil.CONN_LISTEN] == []
        assert [socket for socket in sockets if socket.status == psutil.CONN_ESTABLISHED]

        worker.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(worker.wait(), 60) == 0


async def test_a_stop_in_the_middle_of_an_order_ends_within_ten_seconds(bench: Bench) -> None:
    await bench.shop.control.arm("hang", "confirm")
    async with running(bench) as worker:
        bench.gateway.offer("po-1", bench.intent())
        assert await bench.shop.control.wait(step="confirm", requests=1, seconds=100)
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(worker.wait(), 60) == 0
    end = await bench.gateway.end_of("po-1")
    assert "the worker was stopped before the order was placed" in end.detail


async def test_a_second_worker_on_the_same_journal_is_refused_in_one_line(bench: Bench) -> None:
    async with running(bench) as first:
        await bench.gateway.called("LeaseOrders")
        code, output, errors = await call_program(bench, "run")
    assert (code, output) == (Exit.DATABASE, "")
    words = f"another worker process (pid {first.pid}) is using the journal trading.db: stop that one first"
    assert errors == f"order-worker: {words}\n"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"RAKUTEN_ORDER_GATEWAY_URL": ""}, "RAKUTEN_ORDER_GATEWAY_URL is empty: there is no gateway to work for"),
        ({"RAKUTEN_STEP_TIMEOUT_SECONDS": "soon"}, "RAKUTEN_STEP_TIMEOUT_SECONDS: "),
        ({"RAKUTEN_ORDER_GATEWAY_URL": "grpc://gateway.example"}, "would send the token in plain text"),
        ({"RAKUTEN_EVIDENCE_DIR": "/proc/nowhere"}, "RAKUTEN_EVIDENCE_DIR: "),
    ],
)
async def test_a_wrong_setting_stops_the_start_in_one_line(bench: Bench, settings: dict[str, str], words: str) -> None:
    code, _, errors = await call_program(bench, "run", **settings)
    assert code == 2
    assert words in errors
    assert errors.count("\n") == 1


@pytest.mark.extended
async def test_reclaim_shows_what_comes_of_it_and_says_it_in_its_exit_code(bench: Bench) -> None:
    bench.gateway.reclaimable["po-9"] = bench.gateway.lease("po-9", bench.intent(), lease_count=2)
    bench.gateway.reclaimable["po-8"] = bench.gateway.lease("po-8", '{"items": []}', lease_count=2)
    async with running(bench):
        await bench.gateway.called("LeaseOrders")
        code, output, _ = await call(bench, "reclaim", "po-9", *WHY)
        assert code == Exit.NEEDS_HUMAN
        assert "verified: not ordered" in output
        assert "needs_human, ordered" in output
        code, output, _ = await call(bench, "reclaim", "po-8", *WHY)
        assert code == Exit.NEEDS_HUMAN
        assert "before" not in output
        _, output, _ = await call(bench, "reclaim", "po-8", *WHY)
        assert "request 2 ran before: done; needs_human, created: malformed intent" in output
        code, output, _ = await call(bench, "reclaim", "po-404", *WHY)
        assert code == Exit.NOT_FOUND
        assert "TASK_NOT_FOUND" in output

    code, _, errors = await call(bench, "reclaim", "po-7", *WHY, "--wait", "0.1")
    assert code == Exit.STILL_WAITING
    assert "no worker runs on this journal; the request waits until one is started" in errors
    assert "request 5 is waiting after 0.1 s, and stays open" in errors
    assert (
        "request 5 was filed before and is still open" in (await call(bench, "reclaim", "po-7", *WHY, "--wait", "0"))[1]
    )


async def test_a_reclaim_says_who_asked_and_why(bench: Bench) -> None:
    async with bench.worker():
        await bench.gateway.called("LeaseOrders")
    for reason, shown in (
        ((), "Missing option"),
        (("--reason", " "), "1 to 1,000"),
        (("--reason", "x" * 1_001), "1,000"),
    ):
        code, _, errors = await call(bench, "reclaim", "po-1", *reason, "--wait", "0")
        assert (code, shown in errors) == (Exit.USAGE, True), errors
    await call(bench, "reclaim", "po-1", *WHY, "--wait", "0", LOGNAME="ann", SUDO_USER="")
    await call(bench, "reclaim", "po-2", *WHY, "--by", "bob on call", "--wait", "0")
    for task_id, who in (("po-1", "ann"), ("po-2", "bob on call")):
        reclaim_request = await bench.in_journal(lambda journal, task_id=task_id: journal.reclaims.last(task_id))  # type: ignore[misc]
        assert reclaim_request is not None
        assert (reclaim_request.requested_by, reclaim_request.reason) == (who, WHY[1])


@pytest.mark.parametrize(
    "words", [("reclaim", "po-1", *WHY), ("journal", "show", "po-1"), ("evidence", "list", "po-1")]
)
async def test_a_look_from_the_wrong_folder_says_where_it_looked(bench: Bench, words: tuple[str, ...]) -> None:
    code, output, errors = await call(bench, *words, RAKUTEN_TRADING_DB_PATH="data/trading.db")
    assert (code, output) == (Exit.DATABASE, "")
    assert f"there is no journal at {bench.folder}/data/trading.db; is this the worker's folder" in errors
    assert "RAKUTEN_TRADING_DB_PATH" in errors
    assert "start the worker once" not in errors, "a second journal beside the real one helps nobody"


async def test_the_evidence_is_served_until_the_person_ends_it(bench: Bench) -> None:
    async with running(bench):
        bench.gateway.offer("po-1", bench.intent())
        await bench.gateway.end_of("po-1")
    serving = await asyncio.create_subprocess_exec(
        COMMAND, "evidence", "serve", "po-1", cwd=bench.folder, env=environment(settings_of(bench)),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        line = (await asyncio.wait_for(serving.stdout.readline(), 60)).decode()
        told, _, url = line.strip().partition(" http://")
        assert told == "evidence of po-1, until Ctrl-C:"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            shown = (await client.get(f"http://{url}")).text
        assert "po-1/05-payment" in shown
        assert "NOT INTACT" not in shown
        serving.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(serving.communicate(), 60)
    finally:
        if serving.returncode is None:
            serving.kill()
            await serving.communicate()
    assert (serving.returncode, errors) == (0, b"")
    code, _, told = await call(bench, "evidence", "serve", "po-2")
    assert (code, told) == (Exit.NOT_FOUND, "order-worker: the journal does not know the task po-2\n")


@pytest.mark.extended
async def test_journal_and_evidence_can_be_looked_at_beside_the_running_worker(bench: Bench) -> None:
    async with running(bench):
        lease = bench.gateway.offer("po-1", bench.intent())
        await bench.gateway.end_of("po-1")
        looks = [
            await call(bench, "journal", "list"),
            await call(bench, "journal", "show", "po-1"),
            await call(bench, "evidence", "list", "po-1"),
        ]
        shown = json.loads((await call(bench, "journal", "show", "po-1", "--json"))[1])
        (listed,) = json.loads((await call(bench, "journal", "list", "--json"))[1])
        (bench.folder / "evidence/po-1/05-payment.html").write_text("changed")
        files = json.loads((await call(bench, "evidence", "list", "po-1", "--json"))[1])
    for code, output, errors in looks:
        assert (code, errors) == (0, "")
        assert "po-1" in output
        assert lease.lease_token not in output
    assert (listed["status"], listed["state"]) == ("succeeded", "paid")
    assert shown["order"]["clicked"]
    assert [report["outcome"] for report in shown["reports"]] == ["accepted"] * 6
    assert [file["path"] for file in files if not file["intact"]] == ["evidence/po-1/05-payment.html"]
    for unknown in (("journal", "show"), ("evidence", "list")):
        code, _, errors = await call(bench, *unknown, "po-2")
        assert (code, errors) == (Exit.NOT_FOUND, "order-worker: the journal does not know the task po-2\n")
    narrow = {"COLUMNS": "80"}
    _, output, _ = await call(bench, "journal", "list", **narrow)
    assert listed["site_order_id"] in output
    assert f"{listed['updated_at'][:19].replace('T', ' ')}Z" in output
    _, output, _ = await call(bench, "journal", "show", "po-1", **narrow)
    assert "…" not in output
    for entry in shown["history"]:
        assert f"{entry['at'][:19].replace('T', ' ')}Z" in output
        assert (entry["evidence_ref"] or "") in output


@pytest.mark.extended
async def test_check_says_in_words_what_is_wrong_between_worker_and_gateway(bench: Bench) -> None:
    code, output, errors = await call(bench, "check")
    assert (code, output, errors) == (0, f"the gateway at {bench.target} answers and takes the token\n", "")
    assert "no site can order here" in (await call(bench, "check", RAKUTEN_SANDBOX_URL=""))[2]
    bench.gateway.script["RenewLease"] = [
        Refusal(grpc.StatusCode.UNAUTHENTICATED, errors_pb2.ERROR_REASON_UNAUTHENTICATED)
    ]
    for settings, ends, words in (
        ({}, Exit.DENIED, "does not accept the token, check RAKUTEN_WORKER_TOKEN"),
        ({"RAKUTEN_ORDER_GATEWAY_URL": "grpc://127.0.0.1:1"}, Exit.UNREACHABLE, "1 cannot be reached: nothing listens"),
        ({"RAKUTEN_GATEWAY_CA": "/nowhere/ca.pem"}, Exit.USAGE, "RAKUTEN_GATEWAY_CA: there is no file /nowhere/ca.pem"),
        ({"RAKUTEN_ORDER_GATEWAY_URL": f"grpcs://{bench.target}"}, Exit.UNREACHABLE, "is TLS on at the gateway?"),
        ({"RAKUTEN_ORDER_GATEWAY_URL": bench.shop.url.replace("http", "grpc")}, Exit.UNREACHABLE, "HTTP port"),
    ):
        code, output, errors = await call(bench, "check", **settings)
        assert (code, output) == (ends, ""), errors
        assert words in errors
    assert (await call(bench, "check", RAKUTEN_ORDER_GATEWAY_URL=""))[0] == 2


@pytest.mark.parametrize("words", [("run",), ("journal", "list"), ("reclaim", "po-1", *WHY, "--wait", "0")])
async def test_a_journal_that_cannot_be_used_is_told_with_what_to_do(bench: Bench, words: tuple[str, ...]) -> None:
    folder = bench.folder / "data"
    journal = folder / "trading.db"
    made = await Journal.open(journal, clock=ManualClock(), new_id=CountedEntropy().token)
    await made.close()

    async def told() -> tuple[int | None, str]:
        settings = {"RAKUTEN_TRADING_DB_PATH": "data/trading.db"}
        code, output, errors = await call_program(bench, *words, prefix=WITHOUT_PRIVILEGES, **settings)
        assert errors.count("\n") <= 1, errors
        return code, output + errors

    journal.chmod(0)
    code, said = await told()
    assert (code, f"chmod u+rwX {journal}" in said) == (Exit.DATABASE, True), said
    journal.chmod(0o400)
    code, said = await told()
    if words[0] == "journal":
        assert (code, said) == (0, "no orders\n"), "reading it is enough to look"
    else:
        assert (code, f"the mode 0400 of {journal} does not allow it" in said) == (Exit.DATABASE, True), said
    folder.chmod(0o600)
    try:
        code, said = await told()
    finally:
        folder.chmod(0o700)
    assert (code, f"the mode 0600 of {folder} does not allow it" in said) == (Exit.DATABASE, True), said


async def test_a_new_journal_is_told_and_no_folders_are_made_for_a_mistyped_one(bench: Bench) -> None:
    async with running(bench) as worker:
        assert worker.stderr is not None
        line = await asyncio.wait_for(worker.stderr.readline(), 60)
    assert f"a new, empty journal was made: {bench.folder}/trading.db" in line.decode()
    code, _, errors = await call_program(bench, "run", RAKUTEN_TRADING_DB_PATH="mistyped/folder/trading.db")
    assert code == Exit.USAGE
    assert f"the folder {bench.folder}/mistyped is not there: make it, or put the path right" in errors
    assert not (bench.folder / "mistyped").exists()


async def test_config_shows_what_is_in_effect_but_no_secret(bench: Bench) -> None:
    (bench.folder / ".env").write_text("RAKUTEN_WORKER_ID=local-01\nRAKUTEN_SCRAPER_TOKEN=another-secret\n")
    scraper = {"RAKUTEN_SCRAPER_BASE_URL": "https://me:my-secret@scraper.example"}
    code, output, _ = await call_program(bench, "config", "--json", **scraper)
    assert code == 0
    shown = json.loads(output)
    assert shown["RAKUTEN_WORKER_ID"] == {"value": "local-01", "from": ".env"}
    assert shown["RAKUTEN_WORKER_TOKEN"] == {"value": "(set)", "from": "environment"}
    assert shown["RAKUTEN_LEASE_WAIT_SECONDS"] == {"value": "30", "from": "default"}
    assert shown["RAKUTEN_SCRAPER_BASE_URL"]["value"] == "https://(set)@scraper.example"
    assert "-secret" not in output
    assert "local-01" in (await call(bench, "config"))[1]


async def test_a_misspelt_setting_is_told_and_one_of_the_gateway_is_not(bench: Bench) -> None:
    (bench.folder / ".env").write_text("RAKUTEN_WORKER_IDD=local-01\nRAKUTEN_SITES=sandbox\n")
    code, output, errors = await call(bench, "config", "--json", RAKUTEN_QQQQ="1")
    assert code == 0
    assert "RAKUTEN_SITES" not in output + errors
    assert errors.splitlines() == [
        "order-worker: warning: RAKUTEN_QQQQ in the environment is no setting and is ignored",
        "order-worker: warning: RAKUTEN_WORKER_IDD in .env is no setting and is ignored; is RAKUTEN_WORKER_ID meant?",
    ]
    _, _, errors = await call_program(bench, "run", RAKUTEN_ORDER_GATEWAY_URL="")
    assert "RAKUTEN_WORKER_IDD in .env is no setting" in errors


def test_every_command_is_on_its_page_and_no_other() -> None:
    section = (Path(__file__).parents[2] / "docs" / "worker-cli.md").read_text().partition("## Exit codes")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = {word.removesuffix(" TASK") for cell in cells for word in re.findall(r"`([^`]+)`", cell)}
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    groups = {name: group.commands for name, group in program.commands.items() if isinstance(group, TyperGroup)}
    names = {name for name in program.commands if name not in groups}
    assert told == names | {f"{group} {name}" for group, commands in groups.items() for name in commands}


async def test_the_version_is_told(bench: Bench) -> None:
    assert await call_program(bench, "--version") == (0, f"order-worker {version('order-gateway')}\n", "")


async def test_the_sandbox_shop_runs_until_it_is_stopped(bench: Bench) -> None:
    shop = await asyncio.create_subprocess_exec(COMMAND, "sandbox", "--port", "0", stdout=asyncio.subprocess.PIPE)
    assert shop.stdout is not None
    line = await asyncio.wait_for(shop.stdout.readline(), 60)
    assert line.startswith(b"sandbox shop: http://127.0.0.1:")
    shop.send_signal(signal.SIGTERM)
    await asyncio.wait_for(shop.communicate(), 60)
    assert shop.returncode == 0


@pytest.mark.parametrize(
    "command",
    ["", "run", "sandbox", "reclaim", "journal", "journal list", "evidence list", "evidence serve", "check", "config"],
)
def test_help_explains_every_command(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "Usage: " in shown.output


@pytest.mark.parametrize("command", ["", "reclaim", "journal", "evidence"])
def test_help_tells_every_exit_code(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert epilog(Exit) in " ".join(shown.split())
