"""Java code of the contract has the same names whichever tool generates it."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file.stem for file in (ROOT / "proto/ordergateway/v1").glob("*.proto"))


@pytest.mark.parametrize("file", FILES)
def test_java_names_do_not_depend_on_the_tool(file: str) -> None:
    options = importlib.import_module(f"ordergateway.v1.{file}_pb2").DESCRIPTOR.GetOptions()
    assert options.java_package == "com.ordergateway.v1"
    assert options.java_multiple_files
