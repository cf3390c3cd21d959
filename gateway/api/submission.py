"""Filing orders, the same for every transport: what takes long of it is done beside the event loop and the writer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from gateway.api.answers import accepted
from gateway.api.offload import LARGE_BYTES, checked, off_the_loop
from gateway.domain.models import Actor, Policy, Submission, Submitted, Task
from gateway.domain.refusals import Refusal, RefusedError
from gateway.orders.submit import find_submitted, submit, submit_all, submitted_again
from gateway.store.port import Store

Outcome = Submitted | Refusal
"""What became of one order of a batch."""

_A_TURN: Final = 16
"""So many small orders are checked before the event loop gets its turn."""


async def file_order(store: Store, policy: Policy, wanted: Submission, actor: Actor) -> Submitted:
    """File an order. An intent that is large is compared with the one that the task has in a thread of its own.

    Raises RefusedError TOO_MANY.
    """
    done = await store.write(submit, policy, wanted, actor, compare_up_to=LARGE_BYTES)
    if isinstance(done, Task):
        return await off_the_loop(lambda: submitted_again(done, wanted))
    return accepted(done)


async def file_orders(
    store: Store, policy: Policy, wanted: Sequence[Submission | Refusal], actor: Actor
) -> list[Outcome]:
    """File those orders of a batch that were not refused, by one commit; return what became of each, in order."""
    submissions = [each for each in wanted if isinstance(each, Submission)]
    filed = iter(await store.write_many(submit_all, policy, submissions, actor) if submissions else ())
    return [each if isinstance(each, Refusal) else next(filed) or await _again(store, each) for each in wanted]


async def checked_each(sizes: Sequence[int], check: Callable[[int], Submission]) -> list[Submission | Refusal]:
    """Check the orders of a batch one by one; `sizes` are the characters of each, `check` takes its place.

    The event loop gets its turns in between, and so do others whose texts are large.
    """
    outcomes: list[Submission | Refusal] = []
    since = 0
    for index, size in enumerate(sizes):
        outcomes.append(await checked(size, lambda index=index: _outcome(check, index)))  # type: ignore[misc]
        since += size
        if since > LARGE_BYTES or index % _A_TURN == 0:
            since = 0
            await asyncio.sleep(0)
    return outcomes


def _outcome(check: Callable[[int], Submission], index: int) -> Submission | Refusal:
    try:
        return check(index)
    except RefusedError as error:
        return error.refusal


async def _again(store: Store, wanted: Submission) -> Submitted:
    """Tell what a submission comes to whose task exists; of all that existed, one at a time is held in memory."""
    existing = await store.read(find_submitted, wanted.task_id)
    size = max(len(existing.intent_json), len(wanted.intent_json))
    return await checked(size, lambda: submitted_again(existing, wanted))
