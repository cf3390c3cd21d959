"""What the tests of this folder share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Iterator[None]:
    """What is there already need not be looked through at each collection, of which there are thousands."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
