"""Each part of the lint set-up that is cheap to break, broken once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUF = Path(sys.executable).parent / "buf"


def buf(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUF, *args], capture_output=True, text=True, check=False)


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    return Path(shutil.copytree(ROOT / "proto", tmp_path / "proto"))


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_the_contract_passes_as_it_is(proto: Path) -> None:
    assert buf("lint", proto.parent).returncode == 0
    assert buf("format", proto.parent, "--diff", "--exit-code").returncode == 0
    assert buf("breaking", proto.parent, "--against", proto / "baseline.binpb").returncode == 0


def test_buf_lint_demands_a_comment_on_each_field(proto: Path) -> None:
    replace(
        proto / "ordergateway/v1/orders.proto",
        "  // Ask for the next page with this; empty on the last page. Opaque.\n",
        "",
    )
    result = buf("lint", proto.parent)
    assert result.returncode != 0
    assert "next_page_token" in result.stdout


def test_buf_format_demands_its_form(proto: Path) -> None:
    replace(proto / "ordergateway/v1/orders.proto", "  string task_id = 1;", "  string  task_id = 1;")
    assert buf("format", proto.parent, "--diff", "--exit-code").returncode != 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("  string next_page_token = 2;", "  int64 next_page_token = 2;", id="type"),
        pytest.param("  string next_page_token = 2;", "  string next_page_token = 3;", id="number"),
        pytest.param("  string next_page_token = 2;", "  string following_page_token = 2;", id="name"),
        pytest.param("  TASK_STATUS_STALE = 7;", "", id="enum-value"),
    ],
)
def test_buf_breaking_refuses_what_old_clients_would_misread(proto: Path, old: str, new: str) -> None:
    replace(proto / "ordergateway/v1/orders.proto", old, new)
    assert buf("breaking", proto.parent, "--against", proto / "baseline.binpb").returncode != 0


@pytest.mark.extended
def test_a_stale_generated_file_is_found(proto: Path, tmp_path: Path) -> None:
    generated = "clients/python/ordergateway/v1"
    shutil.copytree(ROOT / generated, tmp_path / generated, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    check = ["sh", "scripts/check_generated.sh"]
    environment = os.environ | {"VENV": os.path.relpath(sys.prefix, tmp_path)}
    clean = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    replace(
        proto / "ordergateway/v1/orders.proto",
        "string next_page_token = 2;",
        "string next_page_token = 2;\n  // New.\n  bool more = 3;",
    )
    stale = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert stale.returncode == 1
    assert "more" in stale.stdout
    assert "make generate" in stale.stderr


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("see https://py" + "pi.org/simple", "package registry"),
        ("open /ho" + "me/somebody/gateway.db", "absolute path"),
        ("# TO" + "DO later", "work left"),
    ],
)
def test_the_tree_check_finds_what_must_not_be_committed(tmp_path: Path, line: str, what: str) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    check = [sys.executable, ROOT / "scripts/check_tree.py"]
    file = tmp_path / "notes.md"
    file.write_text("nothing to find\n")
    assert subprocess.run(check, cwd=tmp_path, check=False).returncode == 0
    file.write_text(f"first\n{line}\n")
    result = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout.startswith("notes.md:2: ")
    assert what in result.stdout


@pytest.mark.needs("git")
def test_the_tree_check_finds_long_modules(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "long.py").write_text("x = 1\n" * 451)
    check = [sys.executable, ROOT / "scripts/check_tree.py"]
    result = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "451 lines" in result.stdout
