"""The demo finds what is not as it should be."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ordergateway.v1 import orders_pb2 as pb

from demo.checks import differences
from demo.orders import DemoOrder, demo_orders

ORDER: DemoOrder = demo_orders("http://127.0.0.1:1")[0]
STATES = (pb.ORDER_STATE_CREATED, pb.ORDER_STATE_IN_CART, pb.ORDER_STATE_ORDERED, pb.ORDER_STATE_PAID)


def good_task() -> pb.Task:
    task = pb.Task(
        task_id=ORDER.task_id,
        intent_json=ORDER.intent_json,
        status=pb.TASK_STATUS_SUCCEEDED,
        placement=pb.PLACEMENT_CERTAIN,
    )
    for number, state in enumerate(STATES):
        report = task.reports.add(state=state)
        if number:
            report.evidence_ref = f"{ORDER.task_id}/0{number}-step"
    task.reports[2].site_order_id = "1-2-3"
    return task


def good_counters() -> dict[str, Any]:
    return {"orders_placed": 1, "payments_made": 1, "order_numbers": ["1-2-3"]}


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    (tmp_path / ORDER.task_id).mkdir()
    for number in (1, 2, 3):
        contents = {f"0{number}-step.html": b"<html>page</html>", f"0{number}-step.png": b"a picture"}
        for name, data in contents.items():
            (tmp_path / ORDER.task_id / name).write_bytes(data)
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        (tmp_path / ORDER.task_id / f"0{number}-step.meta.json").write_text(json.dumps({"sha256": hashes}))
    return tmp_path


def found(task: pb.Task, counters: dict[str, Any], evidence: Path) -> list[str]:
    return differences(ORDER, task, counters, evidence, screenshots=True)


def test_nothing_is_found_where_all_is_well(evidence: Path) -> None:
    assert found(good_task(), good_counters(), evidence) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda task: setattr(task, "status", pb.TASK_STATUS_NEEDS_HUMAN), "the status is needs_human, not succeeded"),
        (lambda task: setattr(task, "placement", pb.PLACEMENT_POSSIBLE), "the placement is possible, not certain"),
        (lambda task: setattr(task, "intent_json", "{}"), "the intent came back as {}"),
        (lambda task: task.reports.pop(0), "the states are in_cart ordered paid, not created in_cart ordered paid"),
        (lambda task: setattr(task.reports[3], "error_code", 5004), "the error codes are {5004}, not none"),
        (lambda task: task.reports[1].ClearField("evidence_ref"), "the report in_cart names no evidence"),
        (lambda task: setattr(task.reports[2], "site_order_id", "9"), "9 was reported and the shop does not know it"),
    ],
)
def test_a_wrong_task_is_found(evidence: Path, change: Any, told: str) -> None:
    task = good_task()
    change(task)
    assert [told in difference for difference in found(task, good_counters(), evidence)] == [True]


@pytest.mark.parametrize(("name", "told"), [("orders_placed", "2 orders, not 1"), ("payments_made", "2 payments")])
def test_a_shop_that_counted_something_else_is_found(evidence: Path, name: str, told: str) -> None:
    assert told in found(good_task(), good_counters() | {name: 2}, evidence)[0]


def test_missing_empty_and_changed_evidence_is_found(evidence: Path) -> None:
    folder = evidence / ORDER.task_id
    (folder / "01-step.html").unlink()
    (folder / "02-step.png").unlink()
    (folder / "03-step.html").write_bytes(b"")
    told = found(good_task(), good_counters(), evidence)
    assert any("01-step.html was reported and does not exist" in difference for difference in told)
    assert any("02-step.html has no screenshot" in difference for difference in told)
    assert any("03-step.html is empty" in difference for difference in told)
    assert any("03-step.html does not match its meta.json" in difference for difference in told)


def test_without_a_browser_the_missing_screenshot_needs_a_reason(evidence: Path) -> None:
    (evidence / ORDER.task_id / "02-step.png").unlink()
    args = (ORDER, good_task(), good_counters(), evidence)
    assert "02-step.html has no screenshot: no reason told" in differences(*args, screenshots=False)[0]
    meta = evidence / ORDER.task_id / "02-step.meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"png_missing_because": "no Chromium"}))
    assert differences(*args, screenshots=False) == []
    assert "has no screenshot: no Chromium" in differences(*args, screenshots=True)[0]
