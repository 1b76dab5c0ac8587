"""Time that a message pulled around the ring waits for its settlement (ring.md 5.4)."""

from __future__ import annotations

import shutil
from pathlib import Path

from protos.ring import Frame, Operation
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Start
from tests.ring.users.test_requests import Successor, answer


async def test_lease_lost_in_a_failover_still_returns_the_message(
    start: Start, new_server: NewServer, tmp_path: Path
) -> None:
    """Check that a lease lost in a failover still returns the message (5.4).

    A failover loses the last writes, and the repeated pull leases anew: then that lease counts.
    """
    server = await new_server()
    node = await start(server, b"node")
    ring = Successor(node)
    await node.declare("orders", visibilityTimeout="1s")
    await node.put("orders", b"a", b"b")
    shutil.copytree(server.directory, tmp_path / "replica", ignore=shutil.ignore_patterns("*.sock"))
    assert answer(await ring.asks(Operation.PULL, b"orders", 1)) == ("OK", b"a")
    server.kill9()
    shutil.rmtree(server.directory)
    shutil.copytree(tmp_path / "replica", server.directory)
    server.restart()
    for request, body in ((2, b"a"), (1, b"b")):
        ring.got.clear()
        reply = Frame(Operation.OK, b"client", b"orders", body, request.to_bytes(16))
        await ring.sends(Frame(Operation.PULL, b"client", b"orders", b"", request.to_bytes(16)))
        await until(lambda reply=reply: reply in ring.got)

    async def both_are_back() -> bool:
        return bool((await node.stats("orders"))["ready"] == 2)

    await until(both_are_back)
    assert len(node.users.leases) == 0


async def test_settlement_stops_the_lease_timer(start: Start, new_server: NewServer) -> None:
    """Check that settlement stops the lease timer: settled messages do not return (5.4)."""
    node = await start(await new_server(), b"node")
    ring = Successor(node)
    await node.declare("orders", visibilityTimeout="1s")
    await node.put("orders", b"a")
    await ring.asks(Operation.PULL, b"orders", 1)
    assert len(node.users.leases) == 1
    await ring.settles(b"orders", 1)
    assert len(node.users.leases) == 0
