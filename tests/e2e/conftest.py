"""Fixtures of the end-to-end tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.parts import Parts, running_parts


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with running_parts(tmp_path) as parts:
        yield parts
