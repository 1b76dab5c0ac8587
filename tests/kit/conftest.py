"""Run the kit's tests on uvloop, and provide an edge with two workers."""

from __future__ import annotations

import pytest

from tests.kit.harness import Program
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
def pair() -> Program:
    """Return an edge with two workers, not yet entered."""
    return Program(workers=2)
