"""A budget, both programs and a shop that counts: the household of docs/money.md."""

from ordergateway.v1 import orders_pb2

from tests.e2e.operator import Operator
from tests.e2e.parts import ENDED, Parts

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
ORDER = 1_080 * 2 + 550
"""What each order of these costs, postage included."""


async def test_a_household_buys_to_the_yen_and_no_further(parts: Parts) -> None:
    operator = Operator(parts)
    await operator.must(f'order-gateway budgets set household {2 * ORDER - 1} --period month --reason "agreed"')
    await parts.worker()
    await parts.submit("po-1")
    assert (await parts.until(*ENDED, task_id="po-1")).status == SUCCEEDED
    await parts.submit("po-2")
    refused = await parts.until(*ENDED, task_id="po-2")
    assert refused.status == NEEDS_HUMAN
    assert [report.error_code for report in refused.reports][-1] == 5005
    assert (
        f"{ORDER} yen to pay are more than the {ORDER - 1} yen left of budget household" in refused.reports[-1].detail
    )
    assert await parts.counted() == (1, 2, 1)

    await operator.must(f'order-gateway budgets set household {2 * ORDER} --period month --reason "a yen more"')
    await parts.submit("po-3")
    assert (await parts.until(*ENDED, task_id="po-3")).status == SUCCEEDED
    assert await parts.counted() == (2, 4, 2)
    told = (await operator.must("order-gateway budgets show household --json")).json
    assert (told["budget"]["settled_yen"], told["budget"]["left_yen"]) == (f"{2 * ORDER}", "0")
    assert [entry["task_id"] for entry in told["entries"]] == ["po-3", "po-1"]
