"""systemd is told when a service is ready, in both forms of address; without systemd nothing is told."""

import socket
from pathlib import Path

import pytest

from common.service_manager import tell_ready


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_that_is_ready_says_so(abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"@{tmp_path}/notify" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        tell_ready()
        assert manager.recv(100) == b"READY=1"


def test_without_a_service_manager_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tell_ready()
