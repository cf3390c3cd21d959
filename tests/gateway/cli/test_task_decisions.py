"""What a person is told of a task, decides about it, and is refused, command by command."""

import re

import pytest

from common.exit_codes import Exit
from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.cli.command import WHY, Commands, stale
from tests.gateway.support.grpc_api import GrpcApi


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


async def test_a_never_leased_task_is_cancelled(api: GrpcApi, commands: Commands) -> None:
    await api.submit()
    assert (await commands.ok("cancel", "po-1", *WHY)).out == "task po-1 is now failed\n"


async def test_one_decision_about_many(api: GrpcApi, commands: Commands) -> None:
    for task_id in ("po-1", "po-2"):
        await stale(api, commands, task_id)
    await api.submit("po-3")
    here = ("tasks", "decide", "requeue", "--site", "rakuten", "--oldest-first", *WHY)
    shown = await commands.ok(*here, "--preview")
    assert shown.out.endswith("requeue: 2 tasks (an order is impossible for 2); refused: 1 task\n")
    assert "task po-3 is queued" in shown.out
    unanswered = await commands.run(*here)
    assert unanswered.code == Exit.USAGE
    assert (
        "nobody answered, and nothing was changed; --yes decides without asking, --preview only shows" in unanswered.err
    )
    refused = await commands.run(*here, given="n\n")
    assert (refused.code, refused.err.endswith("nothing was changed\n")) == (Exit.FAULT, True)
    assert await api.status("po-1") is TaskStatus.STALE
    done = await commands.ok(*here, given="y\n")
    assert done.out.endswith("decided: 2 tasks\n")
    assert [await api.status(f"po-{number}") for number in (1, 2, 3)] == [TaskStatus.QUEUED] * 3
    nothing = await commands.run(*here)
    assert nothing.code == Exit.REFUSED
    assert nothing.out.endswith("requeue: 0 tasks; refused: 3 tasks\n")
    assert "nothing was decided: it would be refused for each of these" in nothing.err
    told = (await commands.run(*here, "--json")).json
    assert [outcome["refusal"]["reason"] for outcome in told["outcomes"]] == ["ERROR_REASON_STATUS_CONFLICT"] * 3
    assert told["results"] == []
    some = await commands.run(*here, "--limit", "2", "--preview")
    assert "there are more than these; --limit, now 2, takes further ones" in some.out
    cancelled = (await commands.ok("tasks", "decide", "cancel", "--prefix", "po-3", *WHY, "--yes", "--json")).json
    assert [result["status"] for result in cancelled["results"]] == ["TASK_STATUS_FAILED"]
    everything = await commands.run("tasks", "decide", "cancel", *WHY)
    assert everything.code == Exit.USAGE
    assert "Give at least one condition, such as --status stale" in everything.err
