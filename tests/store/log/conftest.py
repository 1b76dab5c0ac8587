"""The log on the shared server, as most tests of it need it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.store.desk import Desk
from tests.store.logbook import Logbook, logbook


@pytest.fixture
async def book(desk: Desk) -> AsyncIterator[Logbook]:
    """Declare the log, so that it may be used."""
    async with logbook(desk) as book:
        yield book
