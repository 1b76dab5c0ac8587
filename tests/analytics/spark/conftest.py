"""A store for runs of the job."""

from __future__ import annotations

import pytest

from tests.redis_stream.entries import Entries
from tests.servers import Server


@pytest.fixture
def store(running: Server) -> Entries:
    """Return a store with an empty catalogue."""
    running.clear()
    return Entries(running)
