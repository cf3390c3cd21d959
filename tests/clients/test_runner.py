"""`python -m clients`: what it says of missing tools, of commands that fail, and of clients that check nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clients import __main__ as runner
from clients.languages import Language, Run

Serve = Callable[[Language], tuple[runner.Count, str]]


def language(*, fetch: str = "true", build: str = "true", run: str = "echo 2 passed, 0 failed") -> Language:
    return Language(
        tools=("sh",),
        installed_by="everybody has it",
        fetch=(("sh", "-c", fetch),),
        build=(("sh", "-c", build),),
        runs=(Run("sh", ("sh", "-c", run)),),
    )


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Serve:
    monkeypatch.setattr(runner, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(runner, "ROOT", tmp_path / "clone")
    (tmp_path / "clone/clients/sh").mkdir(parents=True)

    def served(entry: Language) -> tuple[runner.Count, str]:
        monkeypatch.setitem(runner.LANGUAGES, "sh", entry)
        count = runner.Count()
        (tmp_path / "clients/sh").mkdir(parents=True, exist_ok=True)
        runner.serve("sh", tmp_path, {}, dict(os.environ), count)
        return count, capsys.readouterr().out

    return served


def test_checks_are_counted(serve: Serve) -> None:
    count, said = serve(language())
    assert count == runner.Count(passed=2)
    assert "sh: 2 passed, 0 failed (built in " in said


def test_the_rules_that_a_worker_keeps_are_counted(serve: Serve) -> None:
    assert serve(language(run="echo conformance: 15 passed, 0 failed"))[0] == runner.Count(passed=15)
    assert serve(language(run="echo conformance: 14 passed, 1 failed"))[0] == runner.Count(failed=1)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            language(build="echo no such field; exit 3"),
            "sh -c echo no such field; exit 3 ended with status 3:\nno such field",
        ),
        (language(run="echo 1 passed, 0 failed; exit 1"), "ended with status 1"),
        (language(run="echo all is well"), "sh does not end with `N passed, 0 failed`:\nall is well"),
        (language(run="echo 0 passed, 0 failed"), "does not end with"),
        (language(run="echo 3 passed, 1 failed"), "does not end with"),
    ],
    ids=["does not build", "fails", "says nothing", "checks nothing", "a check failed"],
)
def test_what_fails_is_told(serve: Serve, entry: Language, words: str) -> None:
    count, said = serve(entry)
    assert count == runner.Count(failed=1)
    assert words in said


def test_a_download_is_tried_three_times(serve: Serve, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    third = f"echo again >> {tries}; [ $(wc -l < {tries}) = 3 ]"
    assert serve(language(fetch=third))[0] == runner.Count(passed=2)
    tries.unlink()
    count, said = serve(language(fetch=f"echo again >> {tries}; echo the network is down; exit 7"))
    assert count == runner.Count(failed=1)
    assert "what is pinned could not be had in 3 tries" in said
    assert "the network is down" in said
    assert len(tries.read_text().splitlines()) == 3


def test_a_missing_toolchain_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clients", "go", "--build-only"],
        env={"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "go: left out: there is no go (Go 1.26 or newer brings go)\n"
    assert (done.stderr, done.returncode) == ("", 1)
