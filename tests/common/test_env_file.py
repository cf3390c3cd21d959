"""What is said of a `.env` that a library would read only in part."""

from pathlib import Path

import pytest

from common.env_file import fault_of_env_file


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# ours\n\n  RAKUTEN_SITES sandbox\n", 3),
        ("RAKUTEN_SITES=sandbox\nRAKUTEN_LOG_LEVEL\n", 2),
        ("A=1\nRAKUTEN_API_TOKEN='begun\nB=2\n", 2),
        ("=value\n", 1),
    ],
)
def test_a_line_that_would_be_left_out_is_named_by_its_number(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / ".env"
    file.write_text(text)
    fault = fault_of_env_file(file)
    assert fault is not None
    assert fault.startswith(f"{file}, line {line}: it is no NAME=value")
    assert "begun" not in fault, "a part of a token is not shown"


def test_what_is_not_ours_may_stand_there_and_a_file_need_not_be_there(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    assert fault_of_env_file(file) is None
    file.write_text("# a comment\n\nexport PATH\nOTHER\nRAKUTEN_SITES='a, b'  # ours\nRAKUTEN_API_TOKEN=\n")
    assert fault_of_env_file(file) is None


def test_a_folder_and_a_byte_order_mark_are_told(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.mkdir()
    assert f"{file} is a folder" in str(fault_of_env_file(file))
    file.rmdir()
    file.write_text("\ufeffRAKUTEN_SITES=sandbox\n")
    assert "byte order mark" in str(fault_of_env_file(file))
