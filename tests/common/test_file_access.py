"""What a person is told to do about a file that cannot be used, by a process for which modes and owners count."""

import getpass
import os
import subprocess
import sys
from pathlib import Path

WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
ASK = "import sys, pathlib; from common.file_access import next_step; print(next_step(pathlib.Path(sys.argv[1])))"


def told(path: Path) -> str:
    done = subprocess.run(
        [*WITHOUT_PRIVILEGES, sys.executable, "-c", ASK, path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_what_lies_there_decides_what_is_told(tmp_path: Path) -> None:
    file = tmp_path / "gateway.db"
    assert told(file) == "", "a file that can be made"
    file.touch()
    assert told(file) == ""
    assert told(tmp_path / "a" / "b" / "gateway.db") == (
        f"; the folder {tmp_path}/a is not there: make it, or put the path right"
    )
    assert told(file / "gateway.db") == f"; {file} is no folder: put the path right"
    assert told(tmp_path) == f"; {tmp_path} is a folder: name a file in it"
    file.chmod(0o400)
    assert told(file) == f"; the mode 0400 of {file} does not allow it: chmod u+rwX {file}"
    file.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        assert f"the mode 0500 of {tmp_path} does not allow it" in told(file), "a lock is made beside it"
    finally:
        tmp_path.chmod(0o700)


def test_whose_it_is_and_who_asks(tmp_path: Path) -> None:
    file, owner = Path("/gateway.db"), "root"
    if os.geteuid() == 0:
        file, owner = tmp_path / "gateway.db", "uid 54321"
        file.touch(0o600)
        os.chown(file, 54_321, 54_321)
    assert f"belongs to {owner}, and this runs as {getpass.getuser()}: run it as {owner}, or chown" in told(file)
