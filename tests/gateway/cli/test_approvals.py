"""What a person sees of orders that wait for an approval, and does about them, command by command."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.exit_codes import Exit
from tests.gateway.cli.command import WHY, Commands
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

MIKA = "the-secret-of-mika"


@pytest.fixture
async def gateway(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    tokens = {"api_token": ("secret-of-the-shop",), "operator_token": (f"mika={MIKA}",)}
    async with running_gateway(
        tmp_path, time, token="secret-of-the-shop", **tokens, approval_over_yen=3_000
    ) as running:
        await running.api.submit("po-1", '{"item": 1}')
        yield running


@pytest.fixture
def as_mika(commands: Commands) -> Commands:
    return Commands({**commands.environment, "RAKUTEN_OPERATOR_TOKEN": f"mika={MIKA}"})


async def test_from_waiting_to_approved(as_mika: Commands) -> None:
    shown = (await as_mika.ok("decisions")).out
    assert "order-gateway approvals approve po-1 --total ... --reason" in shown
    assert "order-gateway approvals deny po-1 --reason" in shown
    listed = (await as_mika.ok("approvals", "list")).out
    assert all(words in listed for words in ("po-1", "none", "over_yen", '{"item": 1}', "api"))
    assert "held for approval  1" in (await as_mika.ok("health")).out
    (found,) = (await as_mika.ok("tasks", "list", "--held-for-approval", "--json")).json["tasks"]
    assert found["held_for_approval"] is True
    refused = await as_mika.run("approvals", "approve", "po-1", *WHY)
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert "max_total_yen: is required, as the task has no cap" in refused.err
    words = ("approvals", "approve", "po-1", *WHY, "--total", "5000", "--hours", "1.5")
    done = await as_mika.ok(*words)
    assert done.out.startswith("task po-1 is approved for up to 5,000 yen until ")
    assert "you had approved it before; nothing was changed" in (await as_mika.ok(*words)).out
    task = (await as_mika.ok("tasks", "show", "po-1")).out
    assert "approved by mika at" in task
    assert "up to 5,000 yen until" in task
    assert (await as_mika.ok("approvals", "list")).out == "nothing waits for an approval\n"


async def test_denied(as_mika: Commands) -> None:
    assert (await as_mika.ok("approvals", "deny", "po-1", *WHY)).out == "task po-1 is denied\n"
    assert "you had denied it before" in (await as_mika.ok("approvals", "deny", "po-1", *WHY)).out
    task = (await as_mika.ok("tasks", "show", "po-1")).out
    assert "denied by mika at" in task
    assert "looked at the site" in task


async def test_a_token_without_a_name_approves_nothing(commands: Commands) -> None:
    unnamed = Commands({**commands.environment, "RAKUTEN_API_TOKEN": "secret-of-the-shop"})
    refused = await unnamed.run("approvals", "approve", "po-1", *WHY, "--total", "1")
    assert refused.code == Exit.DENIED
    assert "has no name" in refused.err
