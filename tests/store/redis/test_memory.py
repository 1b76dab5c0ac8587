"""The store's memory, and that of its fullest server."""

from __future__ import annotations

import pytest

from services.store import Store
from services.store.redis.memory import memory_of
from tests.servers import Server
from tests.stores import every_server


@every_server
async def test_memory_is_that_of_the_server(own_server: Server) -> None:
    store = Store(own_server.url, "test")
    try:
        own_server.call("CONFIG", "SET", "maxmemory", 64 << 20)
        found = await memory_of(store.connector)
        assert found.limit == 64 << 20
        assert found.used is not None
        assert found.used > 100_000
        assert found.fullest == pytest.approx(found.used / found.limit)
        own_server.call("CONFIG", "SET", "maxmemory", 0)
        unbounded = await memory_of(store.connector)
        assert (unbounded.limit, unbounded.fullest) == (None, None)
    finally:
        await store.close(1.0)
