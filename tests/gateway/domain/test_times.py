"""Every pair of times in the settings is judged: refused, told, or said here to have nothing to do with each other."""

import math
from itertools import combinations
from pathlib import Path

import pytest

from common.settings import SettingsError
from gateway.domain.times import RULES, AtLeast, derived, findings
from gateway.settings import Settings, load_settings
from tests.gateway.support.in_process import make_settings

TIMES = sorted(name for name in Settings.model_fields if name.endswith(("_seconds", "_days")))
FOLLOWS_FROM = {"renewal": "lease_ttl", "query_attempts": "query_lease_ttl"}

APART = {
    "orders": {"lease_ttl", "lease_ack", "permit_ttl", "permit_settle"},
    "waiting": {"lease_max_wait"},
    "queries": {"query_lease_ttl", "query_ttl", "query_retention"},
    "catalogue": {"catalog_interval", "catalog_window"},
    "people": {"worker_offline_alert", "task_unclaimed_alert", "backup_alert"},
    "the past": {"retention"},
    "wishes": {"same_intent"},
    "approvals": {"approval_valid"},
    "sweeps": {"sweep_interval"},
    "sessions": {"console_session"},
    "proposals": {"proposal_valid"},
    "digests": {"notify_digest"},
    "escalation": {"notify_escalate"},
}
"""Times of different parts have nothing to do with each other, unless a rule says so."""

APART_IN_ONE_PART = {
    ("lease_ack", "permit_settle"): "a permit is only given to an acknowledged lease",
    ("lease_ack", "permit_ttl"): "as above",
    ("lease_ttl", "permit_settle"): "the settle time counts from the end of both, lease and permit",
    ("query_lease_ttl", "query_retention"): "the retention counts from the end",
    ("task_unclaimed_alert", "worker_offline_alert"): "one is about tasks, one about workers",
    ("backup_alert", "task_unclaimed_alert"): "backups have nothing to do with tasks",
    ("backup_alert", "worker_offline_alert"): "nor with workers",
}


def short(name: str) -> str:
    return name.removesuffix("_seconds").removesuffix("_days")


def pair_of(rule: AtLeast) -> tuple[str, ...]:
    names = {rule.larger} | ({FOLLOWS_FROM.get(rule.smaller, rule.smaller)} if isinstance(rule.smaller, str) else set())
    return tuple(sorted(names))


def test_every_pair_is_judged_or_said_to_be_apart() -> None:
    judged = {pair_of(rule) for rule in RULES}
    part_of = {name: part for part, names in APART.items() for name in names}
    assert part_of.keys() == {short(name) for name in TIMES}
    for first, second in combinations(sorted(part_of), 2):
        apart = part_of[first] != part_of[second] or (first, second) in APART_IN_ONE_PART
        assert (first, second) in judged or apart, f"{first} and {second}: what if one is longer than the other?"
    assert not judged & APART_IN_ONE_PART.keys()


RULED = """
lease_ack 0.1 1 refused
lease_ttl 0.1 1 refused
permit_ttl 0.1 1 refused
query_lease_ttl 0.1 1 refused
sweep_interval 0.01 1 refused
catalog_interval 1 1 refused
worker_offline_alert 10 1 refused
worker_offline_alert renewal 1 refused
query_ttl 0.1 1 refused
catalog_window catalog_interval 1 refused
lease_ack 2 1
lease_ttl 10 1
permit_ttl 2 1
permit_settle 600 1
lease_max_wait 1 1
task_unclaimed_alert 1 1
query_retention 60 1
worker_offline_alert 10 2
worker_offline_alert renewal 2
lease_ttl lease_ack 1
lease_ttl permit_ttl 1
permit_settle permit_ttl 1
query_ttl query_lease_ttl 1
query_ttl query_attempts 1
query_retention query_ttl 1
catalog_interval query_lease_ttl 1
lease_ttl sweep_interval 1
lease_ack sweep_interval 1
query_lease_ttl sweep_interval 1
worker_offline_alert sweep_interval 1
task_unclaimed_alert sweep_interval 1
catalog_interval sweep_interval 1
backup_alert 3600 1
retention 259200 1
"""
"""Larger, smaller, how many times, whether it is refused: written down a second time, so that a change is meant."""


def test_no_rule_is_lost_or_changed_by_accident() -> None:
    told = [
        f"{rule.larger} {rule.smaller if isinstance(rule.smaller, str) else format(rule.smaller, 'g')} {rule.times:g}"
        f"{' refused' * rule.refused}"
        for rule in RULES
    ]
    assert sorted(told) == sorted(RULED.strip().splitlines())


def test_the_defaults_are_neither_refused_nor_odd() -> None:
    settings = Settings(_env_file=None)
    assert [line for line in settings.unusual() if "SECONDS" in line or "DAYS" in line] == []


def times_for(rule: AtLeast, *, just_below: bool) -> dict[str, float]:
    """Times of which just this rule is broken, or just not, as far as others allow."""
    base: dict[str, float] = {
        "lease_ttl": 3_000.0, "lease_ack": 3_000.0, "permit_ttl": 600.0, "permit_settle": 100_000.0,
        "worker_offline_alert": 100_000.0, "task_unclaimed_alert": 100_000.0, "query_lease_ttl": 1_000.0,
        "query_ttl": 50_000.0, "query_retention": 500_000.0, "catalog_interval": 100_000.0,
        "catalog_window": 1_000_000.0, "retention": 0.0, "backup_alert": 100_000.0, "lease_max_wait": 60.0,
        "sweep_interval": 0.02,
    }  # fmt: skip
    smaller = {"renewal": 60.0, "query_attempts": 3_000.0}.get(str(rule.smaller))
    low = rule.smaller if isinstance(rule.smaller, float) else smaller or base.get(rule.smaller, 50.0)
    if rule.smaller == "sweep_interval":
        base["sweep_interval"] = low
    edge = low * rule.times
    base[rule.larger] = math.nextafter(edge, 0) if just_below else edge
    return base


def broken(rule: AtLeast, seconds: dict[str, float]) -> list[str]:
    """What is said of this rule."""
    return [line for line in findings(derived(seconds, 3), refused=rule.refused) if rule.why in line]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.larger}-{rule.smaller}-{rule.times:g}")
def test_each_rule_holds_to_the_tick(rule: AtLeast) -> None:
    (line,) = broken(rule, times_for(rule, just_below=True))
    assert "RAKUTEN_" in line
    assert broken(rule, times_for(rule, just_below=False)) == []


ODD = [rule for rule in RULES if not rule.refused and rule.smaller != "sweep_interval"]


@pytest.mark.parametrize("rule", ODD[::4], ids=lambda rule: f"{rule.larger}-{rule.smaller}")
def test_what_is_odd_is_told(tmp_path: Path, rule: AtLeast) -> None:
    seconds = times_for(rule, just_below=True)
    days = {f"{name}_days": seconds.pop(name) / 86_400 for name in ("catalog_window", "retention")}
    settings = make_settings(tmp_path, **{f"{name}_seconds": value for name, value in seconds.items()} | days)
    assert any(rule.why in line for line in settings.unusual())


def test_the_two_that_were_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value, said in (
        ("RAKUTEN_WORKER_OFFLINE_ALERT_SECONDS", "20", "a worker that executes an order is heard of that often"),
        ("RAKUTEN_LEASE_ACK_SECONDS", "0.002", "no worker can write a lease down and answer in that time"),
    ):
        with monkeypatch.context() as one:
            one.setenv(name, value)
            with pytest.raises(SettingsError) as refused:
                load_settings()
        assert str(refused.value).startswith(f"{name} ({value} s) is shorter than ")
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
