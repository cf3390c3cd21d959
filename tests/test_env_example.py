"""`.env.example` shows every setting with its meaning and its true default, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.unknown_settings import OF_THE_GATEWAY, OF_THE_WORKER
from gateway.cli.settings import CommandSettings
from gateway.settings import Settings
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[1]
EXAMPLE = (ROOT / ".env.example").read_text()
SHOWN = dict(re.findall(r"^#(RAKUTEN_[A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither settings nor a .env file of whoever runs the tests."""
    for name in SHOWN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_it_is_what_the_script_writes() -> None:
    written = subprocess.run(
        [sys.executable, "scripts/env_example.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert written.stdout == EXAMPLE, "run: make generate"


def test_every_setting_is_shown_once_with_its_meaning() -> None:
    fields = Settings.model_fields.keys() | WorkerSettings.model_fields.keys() | CommandSettings.model_fields.keys()
    names = [f"RAKUTEN_{name.upper()}" for name in fields]
    assert sorted(re.findall(r"RAKUTEN_[A-Z_]+(?==)", EXAMPLE)) == sorted(names)
    assert re.findall(r"\n\n#RAKUTEN_\w+", EXAMPLE) == [], "a setting without a meaning"


def test_the_check_for_unknown_names_knows_every_setting() -> None:
    assert Settings.model_fields.keys() | CommandSettings.model_fields.keys() == OF_THE_GATEWAY
    assert WorkerSettings.model_fields.keys() == OF_THE_WORKER


def test_taking_the_comment_signs_off_changes_nothing() -> None:
    before = Settings(), WorkerSettings()
    Path(".env").write_text("".join(f"{name}={value}\n" for name, value in SHOWN.items() if value))
    assert (Settings(), WorkerSettings()) == before
