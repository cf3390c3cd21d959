"""When the periods of budgets begin: at local midnight, also where clocks are set (docs/specification.md#budgets)."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.budgets import Budget, BudgetPeriod, BudgetScope, scope_of
from gateway.domain.instant import Instant, parse_utc, utc_text

SHORTEST, LONGEST = {"day": 23, "week": 167, "month": 671}, {"day": 25, "week": 169, "month": 745}


def budget(period: str, zone: str) -> Budget:
    return Budget("b", BudgetScope(), BudgetPeriod(period), zone, 1, "", "")


@pytest.mark.parametrize(
    ("zone", "period", "now", "starts_at", "ends_at"),
    [
        ("Asia/Tokyo", "day", "2026-11-30T14:59:59.999999", "2026-11-29T15:00:00", "2026-11-30T15:00:00"),
        ("Asia/Tokyo", "day", "2026-11-30T15:00:00.000000", "2026-11-30T15:00:00", "2026-12-01T15:00:00"),
        ("Asia/Tokyo", "week", "2026-11-29T14:59:59.999999", "2026-11-22T15:00:00", "2026-11-29T15:00:00"),
        ("Asia/Tokyo", "week", "2026-11-29T15:00:00.000000", "2026-11-29T15:00:00", "2026-12-06T15:00:00"),
        ("Asia/Tokyo", "month", "2026-12-31T14:59:59.999999", "2026-11-30T15:00:00", "2026-12-31T15:00:00"),
        ("Asia/Tokyo", "month", "2026-12-31T15:00:00.000000", "2026-12-31T15:00:00", "2027-01-31T15:00:00"),
        ("UTC", "month", "2028-02-29T23:59:59.999999", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
        # Days of 23 and 25 hours.
        ("Europe/Berlin", "day", "2026-03-29T12:00:00.000000", "2026-03-28T23:00:00", "2026-03-29T22:00:00"),
        ("Europe/Berlin", "day", "2026-10-25T12:00:00.000000", "2026-10-24T22:00:00", "2026-10-25T23:00:00"),
        ("Europe/Berlin", "week", "2026-10-25T12:00:00.000000", "2026-10-18T22:00:00", "2026-10-25T23:00:00"),
        # Where midnight is left out a day begins at one, where it comes twice at the first.
        ("Asia/Beirut", "day", "2026-03-29T12:00:00.000000", "2026-03-28T22:00:00", "2026-03-29T21:00:00"),
        ("America/Havana", "day", "2026-11-01T04:30:00.000000", "2026-11-01T04:00:00", "2026-11-02T05:00:00"),
        ("America/Havana", "day", "2026-11-01T05:30:00.000000", "2026-11-01T04:00:00", "2026-11-02T05:00:00"),
        ("Pacific/Kiritimati", "day", "2026-11-30T10:00:00.000000", "2026-11-30T10:00:00", "2026-12-01T10:00:00"),
    ],
)
def test_a_period_is_that_of_the_zone(zone: str, period: str, now: str, starts_at: str, ends_at: str) -> None:
    window = budget(period, zone).window(Instant(f"{now}Z", 0))
    assert window.starts_at == f"{starts_at}.000000Z"
    assert window.ends_at == f"{ends_at}.000000Z"
    assert window.renews_in(Instant(f"{now}Z", 0)) > timedelta(0)


@pytest.mark.parametrize("period", ["day", "week", "month"])
@pytest.mark.parametrize(
    "zone", ["Asia/Tokyo", "Europe/Berlin", "America/Havana", "Asia/Beirut", "Australia/Lord_Howe"]
)
def test_periods_follow_each_other_without_a_gap(zone: str, period: str) -> None:
    made = budget(period, zone)
    at = parse_utc("2026-01-01T12:34:56.000000Z")
    while at.year < 2028:
        window = made.window(Instant(utc_text(at), 0))
        first, end = parse_utc(window.starts_at), parse_utc(window.ends_at)
        assert first <= at < end
        assert SHORTEST[period] <= (end - first) / timedelta(hours=1) <= LONGEST[period]
        assert made.window(Instant(utc_text(end - timedelta(microseconds=1)), 0)) == window
        assert (
            end.astimezone(ZoneInfo(zone)).date() > (end - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date()
        )
        assert made.window(Instant(window.ends_at, 0)).starts_at == window.ends_at
        at = end


@pytest.mark.parametrize(
    "scope",
    [
        BudgetScope(),
        BudgetScope(site="rakuten"),
        BudgetScope(site="rakuten", account=""),
        BudgetScope(site="rakuten", account="a.b-c_1"),
        BudgetScope(identity="alice"),
        BudgetScope(identity="all"),
        BudgetScope(site="all"),
    ],
    ids=str,
)
def test_a_scope_is_read_as_it_was_stored(scope: BudgetScope) -> None:
    assert scope_of(str(scope)) == scope
