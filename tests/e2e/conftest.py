"""Fixtures of the end-to-end tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.parts import Parts, running_parts


@pytest.fixture
async def parts(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Parts]:
    """A test may give the gateway settings of its own as the fixture's parameter."""
    async with running_parts(tmp_path, **getattr(request, "param", {})) as parts:
        yield parts
