"""Fixtures of the fault tests: clients run on uvloop like the edges; scripted histories."""

from __future__ import annotations

import pytest

from tests.faults.script import Script
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
def script() -> Script:
    return Script()
