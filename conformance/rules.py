"""The rules: each is a function of a story that yields what was done against it, a sentence each.

They hold in every situation. The names are what the command prints, and what docs/clients.md explains.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from conformance.story import WRITES, Call, Outcome, Story

SLACK_SECONDS: Final = 0.5
"""What a request may take from the worker to the shop, on a busy machine."""

Rule = Callable[[Story], Iterator[str]]


def acknowledge_first(story: Story) -> Iterator[str]:
    """Nothing is written to the site before a renewal of the lease was answered."""
    renewed = story.calls("RenewLease", Outcome.ANSWERED)
    for lease, handed_at in zip(story.leases, story.handed_at, strict=True):
        answered = [call.ended_at for call in renewed if call.request.lease_token == lease.lease_token]
        until = answered[0] if answered and answered[0] is not None else _next_handed(story, handed_at)
        early = [visit for visit in story.visits(*WRITES) if handed_at <= visit.at < until]
        if early:
            yield f"{early[0].step} reached the shop before the lease was acknowledged"


def permit_first(story: Story) -> Iterator[str]:
    """No click without a permit that was granted, and none after a later refusal."""
    for click in story.visits("submit"):
        asked = [call for call in _permits(story) if call.ended_at is not None and call.ended_at <= click.at]
        if not asked:
            yield "a click without a permit"
        elif asked[-1].outcome is Outcome.REFUSED:
            yield f"a click after the permit was refused ({reason_name(asked[-1].reason)})"
        elif asked[-1].outcome is Outcome.LOST:
            yield "a click though the answer to the request for a permit was lost"


def permit_in_time(story: Story) -> Iterator[str]:
    """The click begins within the permit's time, counted from the moment the request was sent."""
    for click in story.visits("submit"):
        granted = [call for call in _permits(story) if call.outcome is Outcome.ANSWERED and call.at <= click.at]
        if granted:
            late = click.at - granted[-1].at - granted[-1].answer.valid_for.ToNanoseconds() / 1e9
            if late > SLACK_SECONDS:
                yield f"a click {late:.1f} s after the end of its permit, which counts from when it was asked for"


def click_once(story: Story) -> Iterator[str]:
    """A task is clicked once, over all its leases and all lives of the worker."""
    clicks = len(story.visits("submit"))
    if clicks > 1:
        yield f"{clicks} clicks for one task"


def pay_once(story: Story) -> Iterator[str]:
    """An order is paid once."""
    if (payments := len(story.visits("pay"))) > 1:
        yield f"{payments} payments for one task"


def lost_lease(story: Story) -> Iterator[str]:
    """Nothing is written to the site once the lease is refused or its time, counted from the renewal, is over."""
    for lease in {lease.lease_token: lease for lease in story.leases}.values():
        over_at, why = _lost_at(story, lease)
        until = _next_handed(story, over_at)
        for visit in story.visits(*WRITES):
            if over_at + SLACK_SECONDS < visit.at < until:
                yield f"{visit.step} reached the shop {visit.at - over_at:.1f} s after {why}"


def same_report(story: Story) -> Iterator[str]:
    """A report is repeated as it was, sequence included; another one has a higher sequence."""
    by_content: dict[bytes, int] = {}
    by_sequence: dict[int, bytes] = {}
    for call in story.calls("ReportOrder"):
        request: pb.ReportOrderRequest = call.request
        content = _content(request)
        if by_content.setdefault(content, request.sequence) != request.sequence:
            yield f"the report {by_content[content]} was repeated with the sequence {request.sequence}"
        elif by_sequence.setdefault(request.sequence, content) != content:
            yield f"two different reports have the sequence {request.sequence}"
        elif request.sequence < 1:
            yield f"a report has the sequence {request.sequence}"


def lost_report_again(story: Story) -> Iterator[str]:
    """A report whose answer was lost is sent again, until it is answered."""
    answered = {call.request.sequence for call in story.calls("ReportOrder", Outcome.ANSWERED, Outcome.REFUSED)}
    lost = {call.request.sequence: call.request for call in story.calls("ReportOrder", Outcome.LOST)}
    for sequence in sorted(set(lost) - answered):
        yield f"the report {sequence} ({state_name(lost[sequence].state)}) had no answer and was not sent again"


def late_report_once(story: Story) -> Iterator[str]:
    """A report that the gateway refused and kept (`recorded_late`) is not sent again."""
    kept: set[int] = set()
    for call in story.calls("ReportOrder"):
        if call.request.sequence in kept:
            yield f"the report {call.request.sequence} was sent again, though the gateway had kept it"
        if call.recorded_late:
            kept.add(call.request.sequence)


def terms_shown(story: Story) -> Iterator[str]:
    """A permit is asked for with the terms of the confirmation page; after a lost answer with the same ones."""
    before: Call | None = None
    for call in _permits(story):
        if not (call.request.terms.HasField("payable_yen") and call.request.terms.items):
            yield "a permit was asked for without the amount and the items of the confirmation page"
        elif before is not None and before.outcome is Outcome.LOST and call.request.terms != before.request.terms:
            yield "after a lost answer the permit was asked for with other terms"
        before = call


def confirmed_again(story: Story) -> Iterator[str]:
    """After a wait for the permit the confirmation page is opened again before the click."""
    paused = [call for call in _permits(story) if call.reason == errors_pb2.ERROR_REASON_DISPATCH_PAUSED]
    for click in story.visits("submit"):
        waited = [call.at for call in paused if call.at < click.at]
        if waited and not any(waited[-1] < visit.at < click.at for visit in story.visits("confirm")):
            yield "after a wait for the permit the click came without a new look at the confirmation page"


RULES: Final[dict[str, Rule]] = {
    "acknowledge-first": acknowledge_first,
    "permit-first": permit_first,
    "permit-in-time": permit_in_time,
    "click-once": click_once,
    "pay-once": pay_once,
    "lost-lease": lost_lease,
    "same-report": same_report,
    "lost-report-again": lost_report_again,
    "late-report-once": late_report_once,
    "terms-shown": terms_shown,
    "confirmed-again": confirmed_again,
}
OUTCOME: Final = "outcome"
"""The rule of each situation: what comes of the task is what the contract says."""


def reason_name(reason: int) -> str:
    """Return the name of a reason as the contract has it, without its prefix; else its number."""
    try:
        return errors_pb2.ErrorReason.Name(reason).removeprefix("ERROR_REASON_")  # type: ignore[arg-type]
    except ValueError:
        return str(reason)


def state_name(state: int) -> str:
    """Return the name of an order state, in words."""
    return orders_pb2.OrderState.Name(state).removeprefix("ORDER_STATE_").lower()  # type: ignore[arg-type]


def status_name(status: int) -> str:
    """Return the name of a task status, in words."""
    return orders_pb2.TaskStatus.Name(status).removeprefix("TASK_STATUS_").lower()  # type: ignore[arg-type]


def _permits(story: Story) -> list[Call]:
    return story.calls("RequestSubmitPermit")


def _next_handed(story: Story, moment: float) -> float:
    return min((at for at in story.handed_at if at > moment), default=float("inf"))


def _lost_at(story: Story, lease: pb.Lease) -> tuple[float, str]:
    """When a lease was over for its holder at the latest, and why; infinity: never."""
    own = [
        call
        for call in story.events
        if isinstance(call, Call) and call.method != "ReportOrder" and call.request.lease_token == lease.lease_token
    ]
    refused = [
        call.ended_at
        for call in own
        if call.reason == errors_pb2.ERROR_REASON_LEASE_INVALID and call.ended_at is not None
    ]
    renewed = [call.at for call in own if call.method == "RenewLease" and call.outcome is Outcome.ANSWERED]
    if refused:
        return refused[0], "the gateway had said that the lease is invalid"
    if renewed:
        return renewed[-1] + lease.lease_ttl.ToNanoseconds() / 1e9, "the lease had run out"
    return float("inf"), ""


def _content(request: pb.ReportOrderRequest) -> bytes:
    copy = pb.ReportOrderRequest()
    copy.CopyFrom(request)
    copy.ClearField("sequence")
    return copy.SerializeToString(deterministic=True)
