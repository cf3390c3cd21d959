"""A machine that loses its power leaves behind what it had begun; that is what is simulated, not a fault."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

LEFT_BEHIND = (
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for mark in LEFT_BEHIND:
                item.add_marker(mark)


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what was left behind here, so that no later test is blamed for it."""
    yield
    gc.collect()
