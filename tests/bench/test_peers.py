"""The gateway beside other queues: all get the same load, and what is missing is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as program
from bench.peers import scenarios as peer_scenarios
from bench.result import Skipped
from bench.scenarios import QUICK


def test_a_run_without_names_leaves_the_peers_out() -> None:
    assert program.ALL.keys() - program.OURS.keys() == {"peers"}


def test_without_any_peer_they_are_skipped_and_each_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(peer_scenarios, "ON_POSTGRESQL", ("no-such-queue",))
    with pytest.raises(Skipped, match="no peer is installed"):
        peer_scenarios.installed()
    told = capsys.readouterr().err
    assert "no-such-queue is left out: no-such-queue is not installed" in told
    for program_name in ("beanstalkd", "redis-server", "nats-server"):
        assert f"there is no {program_name} on this machine" in told


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.needs("postgresql", "peers")
def test_peers_are_measured_with_the_same_load(tmp_path: Path) -> None:
    versions = peer_scenarios.installed()
    results = peer_scenarios.peers(replace(QUICK, rounds=1, seconds=1, leases=8), tmp_path)
    assert all(result.value > 0 for result in results)
    assert {*peer_scenarios.ON_POSTGRESQL} <= versions.keys()
    for peer in versions:
        assert sum(f"beside {peer} " in result.name for result in results) == 6
