"""A machine of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.machine import Machine, machine


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Machine]:
    """A root shell on a machine on which nothing is installed yet."""
    with machine(tmp_path) as made:
        yield made
