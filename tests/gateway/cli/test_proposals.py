"""What two people do about a decision that needs both, command by command."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.exit_codes import Exit
from tests.gateway.cli.command import WHY, Commands
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

ALICE, BOB = "the-secret-of-alice", "the-secret-of-bobby"


@pytest.fixture
async def gateway(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    tokens = {"api_token": ("secret-of-the-shop",), "operator_token": (f"alice={ALICE}", f"bob={BOB}")}
    async with running_gateway(tmp_path, time, token="secret-of-the-shop", **tokens, second_person=True) as running:
        yield running


@pytest.fixture
def alice(commands: Commands) -> Commands:
    return Commands({**commands.environment, "RAKUTEN_OPERATOR_TOKEN": f"alice={ALICE}"})


@pytest.fixture
def bob(commands: Commands) -> Commands:
    return Commands({**commands.environment, "RAKUTEN_OPERATOR_TOKEN": f"bob={BOB}"})


@pytest.fixture(autouse=True)
async def in_doubt(gateway: RunningGateway, alice: Commands, time: ManualTime) -> None:
    """Two tasks whose workers had leave to click and are known to be dead, for longer than the settle time."""
    for task_id in ("po-1", "po-2"):
        await gateway.api.permit(await gateway.api.take(task_id))
        await alice.ok("expire", task_id, *WHY)
    time.advance(1_000)


async def test_from_proposed_to_confirmed(alice: Commands, bob: Commands) -> None:
    refused = await alice.run("resolve", "po-1", "failed", *WHY)
    assert (refused.code, refused.out) == (Exit.REFUSED, "")
    assert "needs a second person: somebody else than alice confirms proposal 1 until" in refused.err
    assert "proposed" in (await bob.ok("decisions")).out
    assert "proposals that wait for a second person: 1" in (await bob.ok("health")).out
    listed = (await bob.ok("proposals", "list")).out
    assert all(words in listed for words in ("to resolve task po-1 to failed", "alice", "looked at the site"))
    own = await alice.run("proposals", "confirm", "1", *WHY)
    assert (own.code, own.out) == (Exit.DENIED, "")
    assert "somebody else has to confirm it" in own.err
    done = (await bob.ok("proposals", "confirm", "1", *WHY)).out
    assert done == "proposal 1, to resolve task po-1 to failed: confirmed\n"
    assert "you had confirmed it before" in (await bob.ok("proposals", "confirm", "1", *WHY)).out
    assert (await bob.ok("proposals", "list")).out == "no proposal waits\n"
    assert "confirmed" in (await bob.ok("proposals", "list", "--all")).out
    assert "failed" in (await bob.ok("tasks", "show", "po-1")).out


async def test_many_at_once(alice: Commands, bob: Commands) -> None:
    shown = await alice.run("tasks", "decide", "resolve-failed", "--status", "stale", "--yes", *WHY)
    assert shown.code == Exit.REFUSED
    assert "failed, once confirmed" in shown.out
    assert "proposed: 2 tasks; somebody else confirms: `order-gateway proposals confirm" in shown.err
    assert (await alice.ok("proposals", "withdraw", "1", *WHY)).out.endswith(": withdrawn\n")
    done = await bob.run("proposals", "confirm", "1", "7", "2", *WHY)
    assert done.code == Exit.NOT_FOUND
    assert done.out.count(": confirmed") == 1, "a refusal of one keeps none of the others back"
    assert "proposal 1 was withdrawn by alice" in done.out
    assert "there is no proposal 7" in done.err
