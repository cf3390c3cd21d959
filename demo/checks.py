"""What must be true after an order of the demo; each difference is one sentence."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordergateway.v1 import orders_pb2 as pb

from demo.orders import DemoOrder
from demo.upstream import placement_name, state_name, status_name


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file on the worker's disk. `matches`: it has the hash that its meta.json tells; None for meta.json itself."""

    path: Path
    size: int
    matches: bool | None


def evidence_files(folder: Path) -> list[EvidenceFile]:
    """Everything that the worker kept of one task, by name."""
    paths = sorted(
        (path for path in folder.rglob("*") if path.is_file()),
        key=lambda path: (path.name.partition(".")[0], path.name),
    )
    return [EvidenceFile(path, path.stat().st_size, matches_meta(path)) for path in paths]


def matches_meta(path: Path) -> bool | None:
    """Whether a file has the sha256 that the meta.json beside it tells; None for meta.json itself."""
    if path.name.endswith(".meta.json"):
        return None
    meta = path.with_suffix(".meta.json")
    told = json.loads(meta.read_text())["sha256"].get(path.name) if meta.is_file() else None
    return bool(told == hashlib.sha256(path.read_bytes()).hexdigest())


def why_no_screenshot(page: Path) -> str:
    """What the meta.json beside a page tells of its missing screenshot; nothing where it does not."""
    meta = page.with_suffix(".meta.json")
    return str(json.loads(meta.read_text()).get("png_missing_because", "")) if meta.is_file() else ""


def led_elsewhere(page: Path) -> bool:
    """Whether the meta.json beside a page tells that the answer was a redirect, which needs no page of its own."""
    meta = page.with_suffix(".meta.json")
    return meta.is_file() and "location" in json.loads(meta.read_text())


def differences(
    order: DemoOrder, task: pb.Task, counters: Mapping[str, Any], evidence: Path, *, screenshots: bool
) -> list[str]:
    """Everything that is not as it should be.

    Beside each page lies a PNG, or meta.json says why there is none; with `screenshots` nothing but the PNG will do.
    """
    return [
        *task_differences(order, task),
        *evidence_differences(task, evidence, screenshots=screenshots),
        *shop_differences(order, task, counters),
    ]


def task_differences(order: DemoOrder, task: pb.Task) -> Iterator[str]:
    """The gateway's mirror against what was expected."""
    if task.intent_json != order.intent_json:
        yield f"the intent came back as {task.intent_json}"
    if status_name(task.status) != order.status:
        yield f"the status is {status_name(task.status)}, not {order.status}"
    states = tuple(state_name(report.state) for report in task.reports)
    if states != order.states:
        yield f"the states are {' '.join(states) or 'none'}, not {' '.join(order.states)}"
    if placement_name(task.placement) != order.placement:
        yield f"the placement is {placement_name(task.placement)}, not {order.placement}"
    codes = {report.error_code for report in task.reports if report.HasField("error_code")}
    if codes != ({order.error_code} if order.error_code else set()):
        yield f"the error codes are {codes or 'none'}, not {order.error_code or 'none'}"


def evidence_differences(task: pb.Task, evidence: Path, *, screenshots: bool) -> Iterator[str]:
    """Evidence on disk against what was reported: each report beyond `created` has some, and every file is whole."""
    for report in task.reports:
        if report.state != pb.ORDER_STATE_CREATED and not report.HasField("evidence_ref"):
            yield f"the report {state_name(report.state)} names no evidence"
    for ref in sorted({report.evidence_ref for report in task.reports if report.HasField("evidence_ref")}):
        for kind in ("html", "meta.json"):
            if not (evidence / f"{ref}.{kind}").is_file():
                yield f"the evidence {ref}.{kind} was reported and does not exist"
    files = evidence_files(evidence / task.task_id)
    for file in files:
        if file.size == 0 and not led_elsewhere(file.path):
            yield f"the evidence {file.path.relative_to(evidence)} is empty"
        if file.matches is False:
            yield f"the evidence {file.path.relative_to(evidence)} does not match its meta.json"
        if file.path.suffix == ".html" and not file.path.with_suffix(".png").is_file():
            reason = why_no_screenshot(file.path)
            if screenshots or not reason:
                yield f"the evidence {file.path.relative_to(evidence)} has no screenshot: {reason or 'no reason told'}"


def shop_differences(order: DemoOrder, task: pb.Task, counters: Mapping[str, Any]) -> Iterator[str]:
    """The shop's own count, and its order numbers against those that were reported."""
    if counters["orders_placed"] != order.orders_in_shop:
        yield f"the shop counted {counters['orders_placed']} orders, not {order.orders_in_shop}"
    if counters["payments_made"] != order.payments_in_shop:
        yield f"the shop counted {counters['payments_made']} payments, not {order.payments_in_shop}"
    for number in {report.site_order_id for report in task.reports if report.HasField("site_order_id")}:
        if number not in counters["order_numbers"]:
            yield f"the order number {number} was reported and the shop does not know it"
