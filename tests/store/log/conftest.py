"""The log on the shared server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.store.desk import Desk
from tests.store.logbook import Logbook, logbook


@pytest.fixture
async def book(desk: Desk) -> AsyncIterator[Logbook]:
    """Declare the log for use."""
    async with logbook(desk) as book:
        yield book
