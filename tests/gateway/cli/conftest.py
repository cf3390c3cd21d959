"""A gateway, and the commands that talk to it."""

from pathlib import Path

import pytest

from tests.gateway.cli.command import Commands
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
def commands(gateway: RunningGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Commands in an empty folder, with nothing in the environment but where `gateway` is."""
    folder = tmp_path / "shell"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Commands(
        {
            "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}",
            "RAKUTEN_GATEWAY_DB_PATH": str(tmp_path / "stopped" / "gateway.db"),
            "RAKUTEN_BACKUP_DIR": str(tmp_path / "backups"),
        }
    )
