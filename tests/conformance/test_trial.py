"""The conformance kit: an obedient worker passes, and each of five broken ones is found by its rule."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest

from conformance.situations import SITUATIONS
from conformance.trial import try_worker
from conformance.worker import WorkerError

SMALL = Path(__file__).with_name("small_worker.py")


async def broken_rules(*words: str, situations: tuple[str, ...] = tuple(SITUATIONS)) -> dict[str, set[str]]:
    """By situation, which rules were broken."""
    results = [result async for result in try_worker([*words], situations)]
    for result in results:
        print(result.situation, *result.findings, result.tail, sep="\n  ")  # noqa: T201 - shown where a test fails
    return {result.situation: {finding.rule for finding in result.findings} for result in results}


def small(fault: str = "") -> tuple[str, ...]:
    return (sys.executable, str(SMALL), *([fault] if fault else []))


@pytest.mark.timeout(300)
async def test_an_obedient_worker_passes() -> None:
    assert await broken_rules(*small()) == {name: set() for name in SITUATIONS}


@pytest.mark.parametrize(
    ("fault", "situation", "rule"),
    [
        ("acts-at-once", "late-acknowledgement", "acknowledge-first"),
        ("ignores-the-permit-s-time", "permit-time", "permit-in-time"),
        ("clicks-after-a-refusal", "refusals", "permit-first"),
        ("renumbers", "lost-answers", "same-report"),
        ("keeps-a-lost-lease", "lease-refused", "lost-lease"),
        ("keeps-a-lost-lease", "lease-expired", "lost-lease"),
    ],
)
async def test_a_broken_worker_is_found(fault: str, situation: str, rule: str) -> None:
    assert rule in (await broken_rules(*small(fault), situations=(situation,)))[situation]


@pytest.mark.extended
@pytest.mark.timeout(600)
async def test_this_project_s_worker_passes() -> None:
    worker = Path(sys.executable).with_name("order-worker")
    assert await broken_rules(str(worker), "run") == {name: set() for name in SITUATIONS}


async def test_a_worker_that_ends_is_told_at_once() -> None:
    async with asyncio.timeout(30):
        found = await broken_rules(sys.executable, "-c", "print('no')", situations=("order",))
    assert found == {"order": {"outcome"}}


async def test_a_command_that_is_none_is_told() -> None:
    with pytest.raises(WorkerError, match="cannot be started"):
        await broken_rules("/nowhere/worker", situations=("order",))


def test_the_page_explains_every_situation_and_rule() -> None:
    from conformance.rules import OUTCOME, RULES  # noqa: PLC0415

    page = (Path(__file__).parents[2] / "docs/clients.md").read_text()
    assert [name for name in (OUTCOME, *RULES, *SITUATIONS) if f"`{name}`" not in page] == []
    assert shlex.split("order-gateway conformance worker")[1] in page
