"""A failover behind one address, as of a Kubernetes Service or HAProxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.store import DeadLetters, Store, StoreUnavailable
from tests.proxy import Proxy
from tests.servers import Server, eventually
from tests.store.desk import Desk, numbered


@pytest.fixture
def replica(own_server: Server, tmp_path: Path) -> Iterator[Server]:
    server = Server(own_server.program, tmp_path / "replica", {"repl-diskless-sync-delay": "0"}).start()
    server.call("REPLICAOF", "127.0.0.1", own_server.port)
    eventually(lambda: server.info("replication")["master_link_status"] == "up")
    yield server
    server.end()


def fail_over(old: Server, new: Server) -> None:
    """Switch to another server without loss of data or connections."""
    eventually(lambda: old.call("WAIT", 1, 1000) == 1)
    new.call("REPLICAOF", "NO", "ONE")
    old.call("REPLICAOF", "127.0.0.1", new.port)


async def test_refused_command_is_retried_at_the_new_primary(own_server: Server, replica: Server) -> None:
    """Check that a refused command is retried, even one that must not be repeated after execution."""
    async with Desk(own_server) as desk, Proxy(own_server.port) as service:
        queue = await desk.queue(ack_level="memory")
        await desk.put(queue, *numbered(3))
        await desk.reject(await desk.take(queue))
        ours = Store(service.url, "tools")
        try:
            letters = DeadLetters(ours.get_domain(queue.domain), queue)
            ids = [letter.id async for letter in letters.matching()]
            assert (await letters.redrive(ids[:1])).moved == 1
            fail_over(own_server, replica)
            service.lead_to(replica.port)
            with pytest.raises(StoreUnavailable, match="read only replica"):
                await letters.redrive(ids[1:])
            assert (await letters.redrive(ids[1:])).moved == 2
            assert int(replica.call("HGET", queue.keys[1], "len")) == 3
        finally:
            await ours.close()
