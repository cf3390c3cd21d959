"""What a report can carry: whatever a site wrote, the gateway's own checks take what gets into the journal's outbox."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from ordergateway.v1 import order_leases_pb2 as pb

from gateway.api.codec import leases
from tests.worker.conftest import Bench
from tests.worker.journal.test_journal import lease
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.wire import leased_task, report_to_wire
from worker.journal.carryable import FACTS, reduced
from worker.journal.journal import Journal
from worker.journal.records import JournalEntry, Report
from worker.orders.state import OrderState
from worker.sites.port import Submission
from worker.sites.sandbox.adapter import SandboxSite

DEADLINE = datetime(2026, 8, 1, 14, 59, tzinfo=UTC)
GOOD: dict[str, Any] = {
    "site_order_id": "250-1",
    "payable_yen": 1_080,
    "pay_deadline": DEADLINE,
    "evidence_ref": "po-1/04-order-submit",
    "error_code": 5004,
}
# A value that no report can carry, and how its words show it.
WRONG: dict[str, list[tuple[Any, str]]] = {
    "site_order_id": [
        ("   ", "'   '"),
        ("\u3000", "'\\u3000'"),
        ("250\n1", "'250\\n1'"),
        ("250\0", "'250\\x00'"),
        ("250\udc80", "'250\\udc80'"),
        ("9" * 129, "'" + "9" * 129 + "'"),
    ],
    "payable_yen": [(-1, "-1"), (2**53, "9007199254740992"), (2**63, "9223372036854775808"), (10**40, "1" + "0" * 40)],
    "pay_deadline": [
        (datetime(2026, 8, 1), "2026-08-01 00:00:00"),  # noqa: DTZ001 -- the fault that is looked for
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-9))), "9999-12-31"),
    ],
    "evidence_ref": [("../../etc/passwd", "'../../etc/passwd'"), ("a" * 301, "'aaa"), ("ä/1", "'\\xe4/1'"), ("", "''")],
    "error_code": [(-1, "-1"), (100_000, "100000"), (2**31, "2147483648")],
}


async def told(folder: Path, **facts: Any) -> Report:
    """The report that the journal makes of a happening, and what a gateway reads of it."""
    journal = await Journal.open(folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    try:
        taken = lease("po-1")
        taken.lease_token = "x" * 43
        await journal.orders.take_lease(leased_task(taken))
        await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED, **facts))
        report = await journal.reports.next("po-1")
    finally:
        await journal.close()
    assert report is not None
    return report


def taken_by_a_gateway(report: Report) -> Any:
    """What the gateway's own check makes of a report's bytes; raises RefusedError where it takes it not."""
    return leases.report(pb.ReportOrderRequest.FromString(report_to_wire(report, "worker-1").SerializeToString()))


async def test_what_a_report_can_carry_it_carries(tmp_path: Path) -> None:
    report = await told(tmp_path, **GOOD, detail="as it should be")
    assert {name: getattr(report, name) for name in FACTS} == GOOD
    assert report.detail == "as it should be"
    assert taken_by_a_gateway(report).site_order_id == "250-1"


@pytest.mark.parametrize(("name", "value", "shown"), [(name, *case) for name in WRONG for case in WRONG[name]])
async def test_what_it_cannot_carry_is_left_out_and_shown_and_the_rest_stays(
    tmp_path: Path, name: str, value: Any, shown: str
) -> None:
    report = await told(tmp_path, **(GOOD | {name: value}), detail="at the click")
    assert getattr(report, name) is None
    assert {other: getattr(report, other) for other in FACTS if other != name} == {
        other: GOOD[other] for other in FACTS if other != name
    }
    assert report.detail.startswith(f"at the click [a report cannot carry {name} {shown}")
    read = taken_by_a_gateway(report)
    assert (read.state, read.detail) == (OrderState.ORDERED, report.detail)


async def test_a_number_is_told_without_the_blanks_around_it(tmp_path: Path) -> None:
    report = await told(tmp_path, site_order_id="\u3000 250-1\t\n")
    assert (report.site_order_id, report.detail) == ("250-1", "")


@pytest.mark.parametrize("detail", ["x" * 9_000, "\0" * 10, "\udc80 lone", "\U0001d518" * 4_001, "a\r\n\x1b[2Jb"])
async def test_words_are_cut_to_what_fits_and_a_note_is_never_cut_off(tmp_path: Path, detail: str) -> None:
    report = await told(tmp_path, detail=detail, site_order_id="  ", payable_yen=-5)
    assert len(report.detail) <= 4_000
    assert report.detail.endswith("[a report cannot carry site_order_id '  ', payable_yen -5]")
    taken_by_a_gateway(report)


async def test_a_report_without_everything_says_what_it_was(tmp_path: Path) -> None:
    report = await told(tmp_path, **GOOD, detail="words\x1b\u2028")
    bare = reduced(report, (*FACTS, "detail"), "the gateway refused it")
    assert [getattr(bare, name) for name in FACTS] == [None] * len(FACTS)
    assert bare.detail.isascii()
    for part in (
        "the gateway refused it; left out: site_order_id '250-1', payable_yen 1080",
        "detail 'words\\x1b\\u2028'",
    ):
        assert part in bare.detail
    assert (bare.sequence, bare.state, bare.lease_token) == (report.sequence, report.state, report.lease_token)
    taken_by_a_gateway(bare)


@pytest.mark.parametrize("number", ["   ", "9" * 200])
async def test_an_order_whose_number_is_none_is_told_as_ordered_all_the_same(
    bench: Bench, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = SandboxSite.submit

    async def numbered(self: SandboxSite, *about: Any) -> Submission:
        return replace(await submit(self, *about), site_order_id=number)

    monkeypatch.setattr(SandboxSite, "submit", numbered)
    end = await bench.execute()
    assert bench.gateway.states("po-1")[-2:] == ["ordered", "ordered"]
    assert (end.terminal, end.HasField("site_order_id")) == (True, False)
    assert ascii(number)[:100] in end.detail
    assert await bench.ordered() == 1
    for report in bench.gateway.reports("po-1"):
        leases.report(report)
