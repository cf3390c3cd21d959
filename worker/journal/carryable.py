"""What a report can carry: the contract's limits, put on what a site wrote before it goes into the journal.

A report that the gateway cannot take would be the loss of what it tells. So nothing gets into the journal's outbox that
breaks a limit of proto/ordergateway/v1: it is trimmed, or left out and described in the report's words instead.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from common.order_numbers import order_number
from worker.clock import utc_text
from worker.journal.records import JournalEntry, Report

MAX_DETAIL = 4_000
MAX_YEN = 2**53 - 1
MAX_ERROR_CODE = 99_999
MAX_EVIDENCE_REF = 300
MAX_SHOWN = 200
FACTS = ("site_order_id", "payable_yen", "pay_deadline", "evidence_ref", "error_code")
"""What a report brings beside its state and its words."""

_EVIDENCE_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)


def carryable_text(text: str, limit: int = MAX_DETAIL) -> str:
    """Words that the contract can carry: no NUL, no lone surrogates, not too long. A site may have written them."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:limit]


def carryable_number(text: str | None) -> str | None:
    """Return the site's order number without blanks around it; None for an empty, overlong or unprintable one."""
    return order_number(text or "")


def carryable(entry: JournalEntry) -> JournalEntry:
    """Return the same, with everything left out that a report cannot carry; its detail then says what, and shows it."""
    given = {name: getattr(entry, name) for name in FACTS}
    taken: dict[str, Any] = {
        "site_order_id": carryable_number(entry.site_order_id),
        "payable_yen": _within(entry.payable_yen, MAX_YEN),
        "pay_deadline": _moment(entry.pay_deadline),
        "evidence_ref": _reference(entry.evidence_ref),
        "error_code": _within(entry.error_code, MAX_ERROR_CODE),
    }
    left_out = [name for name in FACTS if given[name] is not None and taken[name] is None]
    note = f"a report cannot carry {_described(given, left_out)}" if left_out else ""
    return replace(entry, **taken, detail=_noted(entry.detail, note))


def reduced(report: Report, names: Collection[str], why: str) -> Report:
    """Return the report without these facts, and its words if `detail` is among them; they are described instead.

    With every name of FACTS and `detail` nothing is left in it that a gateway can find fault with.
    """
    given = {name: getattr(report, name) for name in (*FACTS, "detail")}
    left_out = [name for name, value in given.items() if name in names and value not in (None, "")]
    note = f"{why}; left out: {_described(given, left_out) or 'nothing'}; `order-worker journal show` has it all"
    detail = "" if "detail" in names else report.detail
    nothing: dict[str, Any] = dict.fromkeys(set(names) & set(FACTS))
    return replace(report, **nothing, detail=_noted(detail, note))


def _within(value: int | None, most: int) -> int | None:
    return value if value is not None and 0 <= value <= most else None


def _moment(value: datetime | None) -> datetime | None:
    """Return a time that can be written down; one without an offset is no time."""
    if value is None or value.tzinfo is None:
        return None
    try:
        utc_text(value)
    except (ValueError, OverflowError):
        return None
    return value


def _reference(value: str | None) -> str | None:
    fits = value is not None and len(value) <= MAX_EVIDENCE_REF and _EVIDENCE_REF.fullmatch(value)
    return value if fits else None


def _described(given: dict[str, Any], names: Collection[str]) -> str:
    """In plain ASCII, each cut short."""
    return ", ".join(f"{name} {_shown(given[name])}" for name in names)


def _shown(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _noted(detail: str, note: str) -> str:
    """Return the words with a note behind them, which is not what gets cut off."""
    if not note:
        return carryable_text(detail)
    told = f" [{note}]"
    return (carryable_text(detail, MAX_DETAIL - len(told)) + told).strip()
