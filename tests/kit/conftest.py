"""The kit is written for uvloop, so its tests run on it; and an edge with two workers."""

from __future__ import annotations

import pytest

from tests.kit.harness import Program
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
def pair() -> Program:
    """An edge with two workers, to be entered."""
    return Program(workers=2)
