"""Stores of a test's own, and a port for its beacons."""

from __future__ import annotations

from tests.ring.links.conftest import port
from tests.stores import new_server, pytest_asyncio_loop_factories

__all__ = ["new_server", "port", "pytest_asyncio_loop_factories"]
