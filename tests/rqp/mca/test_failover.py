"""A peer that reserves the queue and then fails does not prevent asking another (rqp_mca.md 3.5)."""

from __future__ import annotations

import pytest

from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.mca.failing import failures
from tests.servers import Server


@pytest.mark.parametrize("names", ["ab", "ba"])
async def test_failing_peer_does_not_keep_another_from_being_asked(
    server: Server, new_server: NewServer, start: Start, names: str
) -> None:
    """Check that a failing peer does not keep another from being asked.

    Two edges have the queue: one accepts 10 octets and closes the connection for more (2.4), again and again.
    """
    small = await start(await new_server(), mca={"max_message_bytes": 10})
    large = await start(await new_server())
    queue = await large.numbered("orders", 7)
    await small.numbered("orders", 7)
    peers = {name: {"addresses": [edge.address]} for name, edge in zip(names, (small, large), strict=True)}
    here = await start(server, mca={"peers": peers})
    away = await here.remote("away")
    for number in range(3):
        await here.put(away, b"%d" % number * 50)
        await until(lambda: here.is_empty(away))
    assert await large.bodies(queue) == [b"%d" % number * 50 for number in range(3)]
    assert failures(here, "connection_lost") <= 1
