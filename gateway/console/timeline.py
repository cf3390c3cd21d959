"""The picture of a task's life: when it waited, who held it, when a click was allowed, what was reported.

Pure geometry, in units of the drawing; the template draws it. Long gaps are shortened, or a click window of thirty
seconds would vanish beside a night in the queue: a gap is as wide as the logarithm of its seconds.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Final

from gateway.domain.instant import parse_utc
from gateway.domain.leases import Via
from gateway.domain.models import Policy
from gateway.operations.dossier import Dossier

WIDTH: Final = 960
LEFT: Final = 132
RIGHT: Final = 24
TOP: Final = 34
ROW: Final = 30
_LABEL_WIDTH: Final = 76
_MAX_BARS: Final = 40
_NARROWEST: Final = 3.0


class Row(StrEnum):
    """What a line of the picture is about, from top to bottom."""

    QUEUE = "queue"
    LEASE = "lease"
    CLICK = "click"
    SETTLE = "settle"
    REPORT = "report"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of time. `label`: what it is called; `begins`, `ends`: UTC text, `ends` None: it goes on."""

    row: Row
    x: float
    width: float
    label: str
    begins: str
    ends: str | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment."""

    row: Row
    x: float
    label: str
    at: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A time written above the picture."""

    x: float
    at: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture. `now_x`: where the present is."""

    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[Row, ...]
    now_x: float

    def y(self, row: Row) -> int:
        """Return where the line of a row begins."""
        return TOP + self.rows.index(row) * ROW

    @property
    def height(self) -> int:
        """Return how high the picture is."""
        return TOP + len(self.rows) * ROW + 8


@dataclass(frozen=True, slots=True)
class _Span:
    row: Row
    label: str
    begins: datetime
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class _Moment:
    row: Row
    label: str
    at: datetime


_DECIDED: Final = frozenset({"requeue", "withdraw", "resolve", "expire_now", "cancel", "approve", "deny", "restore"})
_BACK_IN_THE_QUEUE: Final = frozenset({"requeue", "undo"})


def timeline(found: Dossier, policy: Policy) -> Timeline:
    """Draw the life of a task."""
    now = parse_utc(found.seen_at)
    spans = [*_queued(found), *_held(found, policy)][-_MAX_BARS:]
    moments = _moments(found)
    times = sorted(
        {now, parse_utc(found.case.decision.task.task.created_at)}
        | {span.begins for span in spans}
        | {span.ends for span in spans if span.ends is not None}
        | {moment.at for moment in moments}
    )
    scale = _Scale(times)
    rows = {span.row for span in spans} | {moment.row for moment in moments}
    return Timeline(
        bars=tuple(_bar(scale, span, now) for span in spans),
        marks=tuple(Mark(moment.row, scale.x(moment.at), moment.label, _text(moment.at)) for moment in moments),
        ticks=tuple(_ticks(scale, times)),
        rows=tuple(row for row in Row if row in rows),
        now_x=scale.x(now),
    )


def _queued(found: Dossier) -> list[_Span]:
    task = found.case.decision.task.task
    begins = [parse_utc(task.created_at)]
    begins += [parse_utc(event.occurred_at) for event in found.events if event.kind in _BACK_IN_THE_QUEUE]
    leaves = sorted(
        parse_utc(event.occurred_at) for event in found.events if event.before == "queued" and event.after != "queued"
    )
    spans = []
    for begin in sorted(begins):
        place = bisect_right(leaves, begin)
        spans.append(_Span(Row.QUEUE, "", begin, leaves[place] if place < len(leaves) else None))
    if task.status != "queued" and spans and spans[-1].ends is None:
        spans.pop()
    return spans


def _held(found: Dossier, policy: Policy) -> list[_Span]:
    spans = []
    for lease in found.leases:
        if not lease.started_at:
            continue
        ends = None if lease.ended_at is None else parse_utc(lease.ended_at)
        begins = parse_utc(lease.started_at)
        spans.append(_Span(Row.LEASE, f"{lease.lease_number} · {lease.worker_id}", begins, ends))
        clicked_until = ends
        if lease.via is Via.REST:
            spans.append(_Span(Row.CLICK, "REST", begins, ends))
        elif lease.permitted_at is not None:
            permitted = parse_utc(lease.permitted_at)
            over = permitted + policy.permit_ttl
            spans.append(_Span(Row.CLICK, "", permitted, over))
            clicked_until = None if ends is None else max(over, ends)
        else:
            continue
        if clicked_until is not None and found.case.decision.task.task.placement != "certain":
            spans.append(_Span(Row.SETTLE, "", clicked_until, clicked_until + policy.permit_settle))
    return spans


def _moments(found: Dossier) -> list[_Moment]:
    decision = found.case.decision
    told = [_Moment(Row.REPORT, report.state, parse_utc(report.reported_at)) for report in decision.task.reports]
    told += [
        _Moment(Row.REPORT, late.report.state, parse_utc(late.report.reported_at)) for late in decision.late_reports
    ]
    decided = [
        _Moment(Row.PERSON, event.kind, parse_utc(event.occurred_at))
        for event in found.events
        if event.kind in _DECIDED
    ]
    return sorted(told + decided[:_MAX_BARS], key=lambda moment: moment.at)


class _Scale:
    """Where a time stands: between two neighbours of `times` in proportion."""

    def __init__(self, times: Sequence[datetime]) -> None:
        self._times = list(times)
        steps = [math.log1p((later - earlier).total_seconds()) + 0.2 for earlier, later in pairwise(times)]
        whole = sum(steps) or 1.0
        self._at = [float(LEFT)]
        for step in steps:
            self._at.append(self._at[-1] + step / whole * (WIDTH - LEFT - RIGHT))

    def x(self, at: datetime) -> float:
        place = min(bisect_right(self._times, at) - 1, len(self._times) - 1)
        return round(self._at[max(0, place)], 1)


def _bar(scale: _Scale, span: _Span, now: datetime) -> Bar:
    left = scale.x(span.begins)
    right = scale.x(span.ends or now)
    is_open = span.ends is None or span.ends > now
    ends = None if span.ends is None else _text(span.ends)
    return Bar(span.row, left, max(_NARROWEST, right - left), span.label, _text(span.begins), ends, is_open)


def _ticks(scale: _Scale, times: Sequence[datetime]) -> list[Tick]:
    ticks: list[Tick] = []
    for at in times:
        x = scale.x(at)
        if not ticks or x - ticks[-1].x >= _LABEL_WIDTH:
            ticks.append(Tick(x, _text(at)))
    return ticks


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
