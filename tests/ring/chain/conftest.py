"""Fixtures of the chain tests: one store per test, and a free beacon port."""

from __future__ import annotations

from tests.ring.links.conftest import port
from tests.stores import new_server, pytest_asyncio_loop_factories

__all__ = ["new_server", "port", "pytest_asyncio_loop_factories"]
