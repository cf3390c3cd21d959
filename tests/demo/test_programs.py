"""Programs are started, waited for and stopped, whatever they do."""

import socket
import sys
from pathlib import Path

import psutil
import pytest

from demo import programs
from demo.programs import ProgramError, free_port, started

READY = "import time; print('ready', flush=True); time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_is_gone_after_the_block_even_on_failure(tmp_path: Path) -> None:
    pids = []

    def fail_while_it_runs() -> None:
        with started("sleeper", python(READY), {}, folder=tmp_path) as program:
            program.wait_until(lambda: "ready" in program.log.read_text())
            pids.append(program.process.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_it_runs()
    assert [psutil.pid_exists(pid) for pid in pids] == [False]


def test_a_program_that_ignores_the_signal_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.programs.STOP_SECONDS", 0.2)
    with started("deaf", python(DEAF), {}, folder=tmp_path) as program:
        program.wait_until(lambda: "ready" in program.log.read_text())
    assert program.process.returncode == -9


def test_a_program_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    with (
        started("brief", python("raise SystemExit('no such setting')"), {}, folder=tmp_path) as program,
        pytest.raises(ProgramError, match=r"(?s)brief ended with status 1.*no such setting"),
    ):
        program.wait_until(lambda: False)


def test_a_program_that_never_serves_is_told(tmp_path: Path) -> None:
    with (
        started("mute", python(READY), {}, folder=tmp_path) as program,
        pytest.raises(ProgramError, match="mute did not serve within 0 s"),
    ):
        program.wait_until(lambda: False, seconds=0.1)


def test_the_callers_own_settings_do_not_reach_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAKUTEN_GATEWAY_DB_PATH", "somebody's own")
    show = python("import os; print({k: v for k, v in os.environ.items() if 'RAKUTEN' in k})")
    with started("show", show, {"RAKUTEN_SITES": "sandbox"}, folder=tmp_path) as program:
        program.process.wait(10)
    assert program.log.read_text().strip() == "{'RAKUTEN_SITES': 'sandbox'}"


def test_a_free_port_is_none_that_is_taken_or_given_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other, socket.socket() as given:
        other.bind(("127.0.0.1", free_port()))
        given.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        assert given.getsockname()[1] not in programs.OWN_PORTS
        monkeypatch.setattr(programs, "OWN_PORTS", range(taken, taken + 1))
        with pytest.raises(OSError, match="is free"):
            free_port()
