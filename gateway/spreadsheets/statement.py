"""The statement of a day as rows."""

from collections.abc import Iterator
from typing import Final

from ordergateway.v1 import orders_pb2, statements_pb2

from gateway.spreadsheets.words import exact, name_of

COLUMNS: Final = (
    "task_id", "site", "account", "filed_at", "filed_by", "status", "latest_state", "spending", "yen",
    "site_order_ids", "decided_by", "decisions",
)  # fmt: skip


def cells(line: statements_pb2.StatementLine) -> Iterator[str]:
    """Yield what stands in the row of a line."""
    yield from (line.task_id, line.site, line.account, exact(line, "filed_at"), line.filed_by)
    yield name_of(orders_pb2.TaskStatus, line.status)
    yield name_of(orders_pb2.OrderState, line.latest_state)
    yield name_of(statements_pb2.Spending, line.spending)
    yield str(line.yen) if line.HasField("yen") else ""
    yield " ".join(line.site_order_ids)
    yield " ".join(dict.fromkeys(decision.decided_by for decision in line.decisions))
    yield "; ".join(
        f"{exact(decision, 'decided_at')} {decision.kind} by {decision.decided_by}: {decision.reason}"
        for decision in line.decisions
    )
