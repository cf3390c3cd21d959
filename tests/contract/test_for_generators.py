"""What code generators of other languages need of the proto files."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FILES = sorted(file.stem for file in (ROOT / "proto/ordergateway/v1").glob("*.proto"))


@pytest.mark.parametrize("file", FILES)
def test_java_names_do_not_depend_on_the_tool(file: str) -> None:
    options = importlib.import_module(f"ordergateway.v1.{file}_pb2").DESCRIPTOR.GetOptions()
    assert options.java_package == "com.ordergateway.v1"
    assert options.java_multiple_files


@pytest.mark.parametrize("file", FILES)
def test_compilers_of_stable_distributions_read_it(file: str) -> None:
    """Debian 12 has protoc 3.21, which knows neither editions nor `debug_redact`."""
    text = (ROOT / f"proto/ordergateway/v1/{file}.proto").read_text()
    assert 'syntax = "proto3";' in text
    assert "debug_redact" not in text


@pytest.mark.parametrize("file", FILES)
def test_where_go_code_belongs_is_left_to_who_generates_it(file: str) -> None:
    assert not importlib.import_module(f"ordergateway.v1.{file}_pb2").DESCRIPTOR.GetOptions().go_package


def test_buf_generates_from_the_repository_as_it_is(tmp_path: Path) -> None:
    """So its address alone is an input of `buf generate`, without the folder of the contract."""
    template = {"version": "v2", "plugins": [{"local": str(BIN / "protoc-gen-mypy"), "out": str(tmp_path)}]}
    command = [BIN / "buf", "generate", "--template", json.dumps(template), ROOT]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert {f"{file}_pb2.pyi" for file in FILES} == {file.name for file in tmp_path.glob("ordergateway/v1/*.pyi")}
