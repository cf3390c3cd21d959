"""Which orders the settings hold for an approval, and what is told of them at the start."""

from pathlib import Path

import pytest

from common.settings import SettingsError
from gateway.settings import Settings, load_settings

SITES = ("RAKUTEN_SITES", "rakuten,sandbox")


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(*SITES)


def given(monkeypatch: pytest.MonkeyPatch, **values: str) -> Settings:
    for name, value in values.items():
        monkeypatch.setenv(f"RAKUTEN_{name}", value)
    return load_settings()


@pytest.mark.parametrize(
    ("told", "sites"),
    [
        ("off", set()),
        ("on", {"rakuten", "sandbox"}),
        ("sandbox", {"sandbox"}),
        ("sandbox, rakuten", {"rakuten", "sandbox"}),
    ],
)
def test_sites_of_which_every_order_waits(monkeypatch: pytest.MonkeyPatch, told: str, sites: set[str]) -> None:
    settings = given(monkeypatch, APPROVAL_ALWAYS=told)
    assert settings.policy().approval_always == sites
    assert settings.agreed()["APPROVAL_ALWAYS"] == ",".join(sorted(sites))


@pytest.mark.parametrize("told", ["elsewhere", "on,sandbox", "off,on", "yes"])
def test_what_names_no_sites_stops_the_start(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    with pytest.raises(SettingsError, match="APPROVAL_ALWAYS"):
        given(monkeypatch, APPROVAL_ALWAYS=told)


@pytest.mark.parametrize("told", ["-1", "a lot"])
def test_an_amount_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    with pytest.raises(SettingsError, match="APPROVAL_OVER_YEN"):
        given(monkeypatch, APPROVAL_OVER_YEN=told)


def test_nobody_who_can_approve_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> bool:
        return any("wait for an approval, which needs a named token" in line for line in load_settings().unusual())

    assert not told()
    given(monkeypatch, APPROVAL_OVER_YEN="50000")
    assert told()
    given(monkeypatch, OPERATOR_TOKEN="x" * 32)
    assert told()
    given(monkeypatch, OPERATOR_TOKEN=f"mika={'x' * 32}")
    assert not told()
