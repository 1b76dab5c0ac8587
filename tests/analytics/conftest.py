"""Servers for tests without an event loop."""

from tests.redis_stream.conftest import own_server, running, server
from tests.stores import chance

__all__ = ["chance", "own_server", "running", "server"]
