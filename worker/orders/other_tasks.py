"""Which orders on the site belong to other tasks: as this journal knows, and as the gateway says."""

from dataclasses import dataclass

from worker.orders.run import OrderRun

OTHERS_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class OtherTasks:
    """Order numbers of other tasks; `doubt`: why there may be orders of theirs that are not among these, or None."""

    numbers: frozenset[str]
    doubt: str | None = None


async def numbers_of_others(run: OrderRun) -> frozenset[str]:
    """Order numbers of other tasks, as this journal and the gateway know them without being asked anew."""
    of_journal = await run.parts.journal.orders.numbers_of_others(run.task_id, run.site.name)
    return of_journal | (run.other_numbers or frozenset()) | frozenset(run.lease.other_site_order_ids)


async def ask_other_tasks(run: OrderRun, known: frozenset[str]) -> OtherTasks:
    """Ask the gateway anew whose orders there are, beside those known; its silence is a doubt."""
    told = await run.guard.other_orders(seconds=OTHERS_PATIENCE)
    if told is None:
        return OtherTasks(known, "the gateway did not say which orders are other tasks'")
    run.other_numbers = frozenset(told.site_order_ids)
    doubt = "another task may have an order whose number is not known" if told.incomplete else None
    return OtherTasks(known | run.other_numbers, doubt)
