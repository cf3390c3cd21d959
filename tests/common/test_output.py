"""Both commands as processes: a terminal, a closed pipe, a full disk, a `.env` of another encoding, a shell."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.exit_codes import MEANINGS, Exit

PROGRAMS = ("order-gateway", "order-worker")
SCRIPTS = Path(sys.executable).parent
both = pytest.mark.parametrize("program", PROGRAMS)


def environment(**settings: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.upper().startswith(("RAKUTEN_", "COLUMNS"))}
    return kept | settings


def run(
    program: str, *words: str, folder: Path, output: int = subprocess.PIPE, **settings: str
) -> tuple[int, str, str]:
    ran = subprocess.run(
        [SCRIPTS / program, *words],
        cwd=folder,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        check=False,
    )
    return ran.returncode, (ran.stdout or b"").decode(), ran.stderr.decode()


@contextmanager
def unwritable(output: str) -> Iterator[int]:
    """A file descriptor that takes nothing."""
    if output == "closed":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(output, os.O_WRONLY)
    try:
        yield writing
    finally:
        os.close(writing)


def on_terminal(program: str, *words: str, columns: int, folder: Path) -> str:
    """What a command shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = environment(TERM="xterm", NO_COLOR="1")
    process = subprocess.Popen(
        [SCRIPTS / program, *words], cwd=folder, env=settings, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        shown += read
    os.close(ours)
    assert process.wait() == 0, shown
    return re.sub("\x1b\\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


@both
def test_a_terminal_of_80_columns_is_kept_to_and_no_word_is_broken(program: str, tmp_path: Path) -> None:
    shown = on_terminal(program, "config", columns=80, folder=tmp_path)
    assert max(map(len, shown.splitlines())) <= 80
    assert {"RAKUTEN_API_TOKEN", "RAKUTEN_LOG_FORMAT", "RAKUTEN_WORKER_TOKEN", "default"} <= set(shown.split())


def test_a_pipe_gets_plain_text_whatever_the_environment_says(tmp_path: Path) -> None:
    code, out, _ = run("order-worker", "config", folder=tmp_path, FORCE_COLOR="1", COLUMNS="40")
    assert code == 0
    assert "\x1b" not in out
    assert all(line.endswith("default") for line in out.splitlines()[1:]), "one line a row"


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize(
    ("output", "told"),
    [("closed", ""), ("/dev/full", "program: standard output cannot be written (No space left on device)\n")],
)
def test_what_cannot_be_printed_is_no_traceback(size: int, output: str, told: str) -> None:
    """However much is printed, in one piece or in several, and whether or not the buffer is flushed in between."""
    words = f"with standard_output('program'):\n sys.stdout.write('x' * {size})\n print('y')\n raise SystemExit(0)"
    with unwritable(output) as writing:
        ran = subprocess.run(
            [sys.executable, "-c", f"import sys\nfrom common.output import standard_output\n{words}"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ran.returncode, ran.stderr.decode()) == (1, told)


def test_an_output_that_was_closed_before_the_start_is_no_traceback(tmp_path: Path) -> None:
    shell = ["sh", "-c", 'exec "$0" "$@" >&-', SCRIPTS / "order-worker", "config"]
    ran = subprocess.run(shell, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@both
def test_the_programs_end_so(program: str, tmp_path: Path) -> None:
    with unwritable("/dev/full") as writing:
        code, _, errors = run(program, "config", folder=tmp_path, output=writing)
    assert code == 1
    assert errors.endswith(f"{program}: standard output cannot be written (No space left on device)\n")
    assert "Traceback" not in errors


@both
def test_a_byte_that_is_no_utf_8_in_the_settings_file_is_one_line(program: str, tmp_path: Path) -> None:
    """Started as a package here, which is the same program."""
    (tmp_path / ".env").write_bytes("RAKUTEN_SITES=sandbox\n# dépôt\n".encode("latin-1"))
    command = [sys.executable, "-m", program.removeprefix("order-"), "config"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (Exit.USAGE, "")
    assert ran.stderr == f"{program}: .env, line 2: the byte 0xe9 is not UTF-8; save the file as UTF-8\n"


@both
def test_the_shell_completes(program: str, tmp_path: Path) -> None:
    """The environment is what bash sends at a press of the tab key."""
    wanted = {f"_{program.replace('-', '_')}_COMPLETE".upper(): "complete_bash", "COMP_WORDS": f"{program} confi"}
    code, out, _ = run(program, folder=tmp_path, COMP_CWORD="1", **wanted)
    assert (code, out.split()) == (0, ["config"])


def test_no_exit_code_means_two_things() -> None:
    assert len(Exit.__members__) == len(Exit) == len(MEANINGS) == len(set(MEANINGS.values()))
    assert list(MEANINGS) == sorted(Exit)
