"""A worker's trial: one situation after the other, and what each rule says of it."""

import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from conformance.rules import OUTCOME, RULES
from conformance.situations import SITUATIONS
from conformance.stage import GivenUpError, Stage, stage


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a worker did against a rule."""

    rule: str
    words: str


@dataclass(slots=True)
class Result:
    """What came of a situation. `tail`: the last lines that the worker wrote, where something was found."""

    situation: str
    findings: list[Finding] = field(default_factory=list)
    tail: str = ""


async def try_worker(command: list[str], names: Iterable[str] = SITUATIONS) -> AsyncIterator[Result]:
    """Put a worker into these situations, each with a gateway, a shop and a journal of its own.

    Raises WorkerError where the command cannot be started.
    """
    for name in names:
        with tempfile.TemporaryDirectory(prefix="order-gateway-conformance-") as folder:
            async with stage(command, Path(folder)) as (there, worker):
                result = Result(name, [Finding(OUTCOME, words) async for words in _outcome(there, name)])
                result.findings += judged(there)
                if result.findings:
                    result.tail = worker.tail()
        yield result


def judged(there: Stage) -> Iterable[Finding]:
    """Yield what the rules say of all orders of a stage."""
    for order in there.orders:
        for rule, broken in RULES.items():
            yield from (Finding(rule, words) for words in broken(order.story))


async def _outcome(there: Stage, name: str) -> AsyncIterator[str]:
    try:
        async for words in SITUATIONS[name](there):
            yield words
    except GivenUpError as error:
        yield str(error)
    if there.gateway.refused_tokens:
        yield "a call came without the worker's token"
    if len({request.journal_id for request in there.gateway.streams}) > 1:
        yield "the worker named more than one journal"
