"""What is made, and told, where no database lies at the path that the settings name."""

import logging
from pathlib import Path

import pytest

from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite.engine import open_database


def test_a_new_database_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / "data" / "gateway.db"
    open_database(path).close()
    (line,) = caplog.messages
    assert line.startswith(f"a new, empty database was made: {path}; if there is one already")
    open_database(path).close()
    assert caplog.messages == [line]


def test_no_folders_are_made_for_a_mistyped_path(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusableError, match=f"the folder {tmp_path}/mistyped is not there: make it"):
        open_database(tmp_path / "mistyped" / "data" / "gateway.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_none_of_a_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.touch()
    with pytest.raises(DatabaseUnusableError, match=f"Is a directory; {folder} is a folder: name a file in it"):
        open_database(folder)
    with pytest.raises(DatabaseUnusableError, match=f"{file} is no folder: put the path right"):
        open_database(file / "gateway.db")
